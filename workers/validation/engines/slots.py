"""What one adapter takes of an engine's memory, by each engine's own way of keeping room. All sizes are in bytes.

vLLM keeps slots of its largest rank for every module of the base. SGLang does so for the kinds of modules it was
started with, at best those that the adapter has, and keeps q, k and v together, and gate and up. TGI and LoRAX keep
what an adapter has, its rank padded for their kernels.
"""

from collections.abc import Mapping
from typing import Final

from registry.base_models.description import BaseDescription
from registry.base_models.modules import BaseModules, Module
from registry.base_models.slots import element_bytes, values_per_rank, vllm_slot_bytes
from workers.validation.pairs import Layout, true_rank

_TOGETHER: Final = (frozenset({"q_proj", "k_proj", "v_proj"}), frozenset({"gate_proj", "up_proj"}))
_SMALLEST_KERNEL_RANK: Final = 8
_KERNEL_BLOCK: Final = 16


def slot_bytes(layout: Layout, modules: BaseModules, base: BaseDescription, *, max_rank: int) -> dict[str, int]:
    """The bytes of one slot by engine.

    Args:
        layout: the adapter's tensors.
        modules: the base's modules.
        base: the base, for its element type.
        max_rank: the largest rank that engines for this base are started with.

    """
    per_rank = element_bytes(base)
    own = own_widths(layout, modules)
    return {
        "vllm": vllm_slot_bytes(modules, base, max_rank=max_rank),
        "sglang": per_rank * max_rank * sum(map(values_per_rank, _with_siblings(own, modules).values())),
        "tgi": per_rank * sum(kernel_rank(rank) * width for rank, width in own.values()),
        "lorax": per_rank * sum(kernel_rank(rank) * width for rank, width in own.values()),
    }


def own_widths(layout: Layout, modules: BaseModules) -> dict[str, tuple[int, int]]:
    """True rank, and inputs plus outputs, of every module that has whole weights and a place in the base."""
    return {
        name: (rank, values_per_rank(modules.modules[name]))
        for name, pair in layout.pairs.items()
        if name in modules.modules and (rank := true_rank(pair)) is not None
    }


def kernel_rank(rank: int) -> int:
    """What TGI and LoRAX pad `rank` to: 8, or a multiple of 16."""
    return _SMALLEST_KERNEL_RANK if rank <= _SMALLEST_KERNEL_RANK else -(-rank // _KERNEL_BLOCK) * _KERNEL_BLOCK


def _with_siblings(own: Mapping[str, object], modules: BaseModules) -> dict[str, Module]:
    kinds = {name.rpartition(".")[2] for name in own}
    for together in _TOGETHER:
        if kinds & together:
            kinds |= together
    return {name: module for name, module in modules.modules.items() if name.rpartition(".")[2] in kinds}
