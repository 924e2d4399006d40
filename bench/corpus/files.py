"""Files that are missing, broken, of another format, or made to do harm."""

import json
import os
import pickle
import struct
from collections.abc import Callable

import numpy as np

from bench.corpus.case import Kind
from bench.corpus.workshop import Workshop, renamed, safetensors, with_header
from workers.validation.kinds import CONFIG_FILE, WEIGHTS_FILE

FILES = Kind("files")


class _Opener:
    """Unpickled by a loader that trusts it, this opens a pipe for reading; weights-only loaders refuse it."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.popen, ("true",)


@FILES.reject("adapter_config.json is missing")
def no_config(work: Workshop) -> None:
    work.weights(work.lora())


@FILES.reject("adapter_model.safetensors is missing")
def no_weights(work: Workshop) -> None:
    work.config()


@FILES.reject("pickle|bin")
def a_pickle_that_runs_code(work: Workshop) -> None:
    work.config()
    work.file("adapter_model.bin", pickle.dumps(_Opener()))


@FILES.reject("pickle|truncated|safetensors")
def a_pickle_named_safetensors(work: Workshop) -> None:
    work.config()
    work.file(WEIGHTS_FILE, pickle.dumps(_Opener()))


@FILES.reject("gguf")
def gguf(work: Workshop) -> None:
    work.config()
    work.file("adapter.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, 0))


@FILES.reject("shard")
def in_shards(work: Workshop) -> None:
    tensors, names = work.lora(), [f"adapter_model-0000{part}-of-00002.safetensors" for part in (1, 2)]
    where = {name: names["lora_B" in name] for name in tensors}
    for part in names:
        work.weights({name: array for name, array in tensors.items() if where[name] == part}, part)
    work.file(f"{WEIGHTS_FILE}.index.json", json.dumps({"metadata": {}, "weight_map": where}))
    work.config()


@FILES.reject("nested")
def a_run_s_whole_folder(work: Workshop) -> None:
    work.sound()
    (work.folder / "checkpoint-500").mkdir()
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        (work.folder / name).rename(work.folder / "checkpoint-500" / name)


@FILES.reject("mlx")
def from_mlx(work: Workshop) -> None:
    tensors = renamed(renamed(work.lora(layers=[0, 1]), "base_model.model.", ""), ".weight", "")
    small = renamed(renamed(tensors, "lora_A", "lora_a"), "lora_B", "lora_b")
    work.weights({name: array.T for name, array in small.items()}, "adapters.safetensors")
    work.file(CONFIG_FILE, json.dumps({"fine_tune_type": "lora", "lora_parameters": {"rank": 8, "scale": 20.0}}))


@FILES.reject("lfs")
def an_lfs_pointer(work: Workshop) -> None:
    work.config()
    work.file(WEIGHTS_FILE, f"version https://git-lfs.github.com/spec/v1\noid sha256:{'cd' * 32}\nsize 3717656\n")


@FILES.reject("truncated")
def cut_off_in_the_data(work: Workshop) -> None:
    work.config()
    work.file(WEIGHTS_FILE, safetensors(work.lora())[:-5000])


@FILES.reject("truncated|header")
def cut_off_in_the_header(work: Workshop) -> None:
    work.config()
    work.file(WEIGHTS_FILE, safetensors(work.lora())[:900])


@FILES.reject("truncated|empty|short")
def no_bytes_at_all(work: Workshop) -> None:
    work.config()
    work.file(WEIGHTS_FILE, b"")


@FILES.reject("header")
def a_header_of_a_terabyte(work: Workshop) -> None:
    work.config()
    work.file(WEIGHTS_FILE, with_header({}, length=1 << 40))


@FILES.reject("header|json")
def a_header_that_is_no_json(work: Workshop) -> None:
    work.config()
    work.file(WEIGHTS_FILE, with_header(b"{'single': quotes}"))


@FILES.reject("nested|deep")
def a_header_of_brackets(work: Workshop) -> None:
    work.config()
    work.file(WEIGHTS_FILE, with_header(b'{"a":' + b"[" * 100_000))


@FILES.reject("overlap")
def tensors_that_share_bytes(work: Workshop) -> None:
    work.config()
    entry = {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64]}
    work.file(WEIGHTS_FILE, with_header({"a": entry, "b": entry}, bytes(64)))


@FILES.reject("unused|gap")
def a_hole_between_tensors(work: Workshop) -> None:
    work.config()
    places = {"a": [0, 64], "b": [99, 163]}
    entries = {name: {"dtype": "F32", "shape": [4, 4], "data_offsets": place} for name, place in places.items()}
    work.file(WEIGHTS_FILE, with_header(entries, bytes(163)))


@FILES.reject("trailing")
def bytes_behind_the_tensors(work: Workshop) -> None:
    work.config()
    work.file(WEIGHTS_FILE, safetensors(work.lora()) + b"MZ\x90\x00 anything may hide here")


@FILES.reject("bytes|takes|size")
def a_shape_larger_than_its_bytes(work: Workshop) -> None:
    work.config()
    work.file(
        WEIGHTS_FILE,
        with_header({"a": {"dtype": "F32", "shape": [1 << 20, 1 << 20], "data_offsets": [0, 64]}}, bytes(64)),
    )


@FILES.reject("duplicate")
def a_tensor_named_twice(work: Workshop) -> None:
    work.config()
    entry = b'"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}'
    work.file(WEIGHTS_FILE, with_header(b"{" + entry + b", " + entry + b"}", bytes(16)))


@FILES.reject("empty|no tensors")
def no_tensors(work: Workshop) -> None:
    work.config()
    work.weights({})


@FILES.reject("dtype|F8")
def in_8_bit_floats(work: Workshop) -> None:
    work.config()
    work.weights({name: np.full(array.shape, 0x38, np.uint8) for name, array in work.lora().items()})


@FILES.reject("dtype|I8")
def in_8_bit_integers(work: Workshop) -> None:
    work.config()
    work.weights({name: np.round(array * 100).astype(np.int8) for name, array in work.lora().items()})


@FILES.reject("dtype|F64")
def in_float64(work: Workshop) -> None:
    work.config()
    work.weights({name: array.astype(np.float64) for name, array in work.lora().items()})


@FILES.reject("link")
def a_link_to_the_weights(work: Workshop) -> None:
    work.sound()
    outside = work.folder.with_name("outside.safetensors")
    (work.folder / WEIGHTS_FILE).rename(outside)
    (work.folder / WEIGHTS_FILE).symlink_to(outside)


@FILES.reject("link")
def a_link_to_a_file_of_the_system(work: Workshop) -> None:
    work.sound()
    (work.folder / "README.md").symlink_to("/etc/passwd")


@FILES.reject("pipe|device")
def a_pipe_in_the_place_of_weights(work: Workshop) -> None:
    work.config()
    os.mkfifo(work.folder / WEIGHTS_FILE)


@FILES.reject("embedding")
def embeddings_of_new_tokens(work: Workshop) -> None:
    work.sound()
    rows = work.random.standard_normal((2, work.hidden), dtype=np.float32)
    work.weights({"input_embeddings": rows, "output_embeddings": rows}, "new_embeddings.safetensors")


@FILES.reject("added token|vocabulary")
def tokens_beyond_the_vocabulary(work: Workshop) -> None:
    work.sound()
    work.file("added_tokens.json", json.dumps({"<|tool|>": work.base.modules["lm_head"].outputs}))


@FILES.reject("added token|vocabulary")
def tokens_beyond_the_vocabulary_in_the_tokenizer(work: Workshop) -> None:
    work.sound()
    token = {"id": work.base.modules["lm_head"].outputs, "content": "<|tool|>", "special": True}
    work.file("tokenizer.json", json.dumps({"version": "1.0", "added_tokens": [token], "model": {}}))


@FILES.reject("added token|vocabulary")
def tokens_beyond_the_vocabulary_in_its_settings(work: Workshop) -> None:
    work.sound()
    decoder = {str(work.base.modules["lm_head"].outputs): {"content": "<|tool|>", "special": True}}
    work.file("tokenizer_config.json", json.dumps({"added_tokens_decoder": decoder}))
