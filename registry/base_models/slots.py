"""The memory that an engine sets aside for adapters of a base, whatever they are. All sizes are in bytes."""

from typing import Final

from registry.base_models.description import BaseDescription
from registry.base_models.modules import BaseModules, Module
from registry.base_models.safetensors_header import DTYPE_BITS

VLLM_RANKS: Final = (1, 8, 16, 32, 64, 128, 256, 320, 512)
# Engines compute in the base's type, and in two bytes where its weights are quantised.
_QUANTISED_BITS: Final = 16


def vllm_slot_bytes(modules: BaseModules, base: BaseDescription, *, max_rank: int) -> int:
    """One slot of vLLM: its largest rank for every module of the base, whatever an adapter has of them."""
    return element_bytes(base) * vllm_rank(max_rank) * sum(map(values_per_rank, modules.modules.values()))


def vllm_rank(max_rank: int) -> int:
    """The step of --max-lora-rank that holds `max_rank`; above the last step, `max_rank` itself."""
    return next((step for step in VLLM_RANKS if step >= max_rank), max_rank)


def element_bytes(base: BaseDescription) -> int:
    """Bytes of one value in a slot."""
    bits = [DTYPE_BITS[info.dtype] for info in base.tensors.values() if len(info.shape) > 1]
    commonest = max(set(bits), key=bits.count, default=_QUANTISED_BITS)
    return max(commonest, _QUANTISED_BITS) // 8


def values_per_rank(module: Module) -> int:
    """Values of a module's adapter for each rank: its inputs and outputs."""
    return module.inputs + module.outputs
