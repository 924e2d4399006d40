"""Time and memory of validating a rank-16 all-linear adapter of an 8B-shaped base, in a process of its own.

    python -m bench.validation.bound FOLDER

prints one JSON object per element type. The yardstick is one pass that reads the file and hashes it, by MiB.
"""

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from registry.base_models.description import BaseDescription, TensorInfo
from workers.validation import Limits, check_folder
from workers.validation.kinds import CONFIG_FILE, WEIGHTS_FILE

RANK: Final = 16
MAX_RATIO: Final = 1.5
MAX_MEMORY_BYTES: Final = 200 << 20
_RUNS: Final = 31
_MIB: Final = 1 << 20
_HIDDEN, _KV, _INNER, _LAYERS, _VOCABULARY = 4096, 1024, 14336, 32, 128_256
_WIDTHS: Final = {
    "self_attn.q_proj": (_HIDDEN, _HIDDEN),
    "self_attn.k_proj": (_HIDDEN, _KV),
    "self_attn.v_proj": (_HIDDEN, _KV),
    "self_attn.o_proj": (_HIDDEN, _HIDDEN),
    "mlp.gate_proj": (_HIDDEN, _INNER),
    "mlp.up_proj": (_HIDDEN, _INNER),
    "mlp.down_proj": (_INNER, _HIDDEN),
}


@dataclass(frozen=True, slots=True)
class Bound:
    """One measurement; times in seconds, sizes in bytes. `memory_bytes` is the peak of the whole process."""

    dtype: str
    verdict: str
    size: int
    check_s: float
    yardstick_s: float
    median_ratio: float
    memory_bytes: int
    largest_tensor: int

    @property
    def ratio(self) -> float:
        return self.check_s / self.yardstick_s

    @property
    def is_kept(self) -> bool:
        """Whether validation stays within its bound."""
        is_small = self.memory_bytes < MAX_MEMORY_BYTES + self.largest_tensor
        return self.verdict == "accept" and self.ratio <= MAX_RATIO and is_small

    def sentence(self) -> str:
        memory, room = self.memory_bytes / _MIB, (MAX_MEMORY_BYTES + self.largest_tensor) / _MIB
        return (
            f"8B-shaped, rank {RANK}, all linear, {self.dtype}: {self.size / _MIB:.0f} MiB in "
            f"{self.check_s * 1000:.0f} ms, {self.ratio:.2f} x reading and hashing "
            f"({self.yardstick_s * 1000:.0f} ms; at most {MAX_RATIO}; {self.median_ratio:.2f} by medians); "
            f"{memory:.0f} MiB of memory (less than {room:.0f})"
        )


def measure(folder: Path) -> list[Bound]:
    """Measure in a fresh process, whose memory is nothing but validation's."""
    command = [sys.executable, "-m", "bench.validation.bound", str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [Bound(**json.loads(line)) for line in done.stdout.splitlines()]


def base() -> BaseDescription:
    """A base in the shapes of Llama 3 8B."""
    tensors = {f"{name}.weight": (_VOCABULARY, _HIDDEN) for name in ("model.embed_tokens", "lm_head")}
    for layer in range(_LAYERS):
        for name, (inputs, outputs) in _WIDTHS.items():
            tensors[f"model.layers.{layer}.{name}.weight"] = (outputs, inputs)
    return BaseDescription(
        architecture="LlamaForCausalLM",
        config_digest="0" * 64,
        tokenizer_digest=None,
        chat_template_digest=None,
        vocab_size=_VOCABULARY,
        tied_embeddings=False,
        tensors={name: TensorInfo("BF16", shape) for name, shape in tensors.items()},
        weight_files={},
    )


def make(folder: Path, dtype: str) -> int:
    """Write the adapter tensor by tensor, never whole in memory; the bytes of its largest tensor."""
    folder.mkdir(parents=True, exist_ok=True)
    width = {"BF16": 2, "F32": 4}[dtype]
    shapes = {
        f"base_model.model.model.layers.{layer}.{name}.lora_{half}.weight": shape
        for layer in range(_LAYERS)
        for name, (inputs, outputs) in _WIDTHS.items()
        for half, shape in (("A", (RANK, inputs)), ("B", (outputs, RANK)))
    }
    sizes = [width * rows * columns for rows, columns in shapes.values()]
    ends = np.cumsum([0, *sizes]).tolist()
    entries = {
        name: {"dtype": dtype, "shape": list(shape), "data_offsets": ends[at : at + 2]}
        for at, (name, shape) in enumerate(shapes.items())
    }
    _write(folder / WEIGHTS_FILE, json.dumps(entries).encode(), sizes, dtype)
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": 32, "target_modules": "all-linear", "bias": "none"}
    (folder / CONFIG_FILE).write_text(json.dumps({**config, "base_model_name_or_path": "synthetic-8b"}))
    return max(sizes)


def _write(path: Path, header: bytes, sizes: list[int], dtype: str) -> None:
    random = np.random.default_rng(seed=8)
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for size in sizes:
            values = random.standard_normal(size // (2 if dtype == "BF16" else 4), dtype=np.float32) * np.float32(0.02)
            file.write(
                (values.view(np.uint32) >> 16).astype(np.uint16).tobytes() if dtype == "BF16" else values.tobytes()
            )


def _yardstick(path: Path) -> None:
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_MIB):
            digest.update(chunk)
    digest.hexdigest()


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def _measured(folder: Path, dtype: str, described: BaseDescription, largest: int) -> Bound:
    def check() -> str:
        return check_folder(folder, declared=None, base=described, limits=Limits(max_rank=RANK)).verdict.value

    path = folder / WEIGHTS_FILE
    # By turns. The least of each is judged, as what the machine takes undisturbed; the medians are told beside it. The
    # number of turns is fixed: going on until it fits would be no measurement.
    turns = [(_seconds(lambda: _yardstick(path)), _seconds(check)) for _ in range(_RUNS)]
    yardsticks, checks = [turn[0] for turn in turns], [turn[1] for turn in turns]
    return Bound(
        dtype=dtype,
        verdict=check(),
        size=path.stat().st_size,
        yardstick_s=min(yardsticks),
        check_s=min(checks),
        median_ratio=statistics.median(checks) / statistics.median(yardsticks),
        memory_bytes=_peak_memory(),
        largest_tensor=largest,
    )


def _peak_memory() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))


def main() -> None:
    """Make and measure both element types."""
    parser = argparse.ArgumentParser(prog="python -m bench.validation.bound")
    parser.add_argument("folder", type=Path)
    folder, described = parser.parse_args().folder, base()
    for dtype in ("BF16", "F32"):
        found = _measured(folder / dtype, dtype, described, make(folder / dtype, dtype))
        sys.stdout.write(json.dumps({name: getattr(found, name) for name in Bound.__slots__}) + "\n")


if __name__ == "__main__":
    main()
