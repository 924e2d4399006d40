"""Check "cost": bytes on disk, bytes of a slot on every engine, and how long the weights took from disk to memory."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from workers.validation.engines.slots import slot_bytes
from workers.validation.kinds import WEIGHTS_FILE
from workers.validation.report import Check, JsonValue, Verdict
from workers.validation.subject import Subject

NAME: Final = "cost"
_MIB: Final = 1 << 20


def check(subject: Subject) -> Iterator[Check]:
    """Say what serving the adapter takes. Never refuses: what is too large is the files check's matter."""
    load = subject.weights.load
    if subject.weights.header is None or load is None:
        return
    sizes = subject.listing.files
    disk = sum(sizes[path] for path in subject.kept)
    slots = slot_bytes(subject.layout, subject.modules, subject.base, max_rank=subject.limits.max_rank)
    message = (
        f"{disk / _MIB:.1f} MiB on disk; at rank {subject.limits.max_rank} a slot takes "
        f"{slots['vllm'] / _MIB:.1f} MiB on vLLM and {slots['sglang'] / _MIB:.1f} MiB on SGLang; TGI and LoRAX take "
        f"{slots['tgi'] / _MIB:.1f} MiB"
    )
    evidence: dict[str, JsonValue] = {
        "bytes": disk,
        "weights_bytes": sizes[WEIGHTS_FILE],
        "max_rank": subject.limits.max_rank,
        "slot_bytes": slots,
    }
    yield Check(NAME, Verdict.PASS, "cost", message, evidence, measured={"load": asdict(load)})
