"""Values that poison an engine, and ranks that are not what the config says."""

from collections.abc import Callable

import numpy as np

from bench.corpus.case import Kind
from bench.corpus.workshop import ROOT, Array, Workshop, bfloat16

VALUES = Kind("values")
V_A = f"{ROOT}layers.11.self_attn.v_proj.lora_A.weight"
O_B = f"{ROOT}layers.29.self_attn.o_proj.lora_B.weight"


def _spoilt(work: Workshop, name: str, value: float, stored: Callable[[Array], Array] | None = None) -> None:
    """An adapter with one value of one tensor replaced, its tensors changed by `stored`."""
    tensors = work.lora()
    tensors[name][3, 5] = value
    work.weights({key: stored(array) for key, array in tensors.items()} if stored else tensors)
    work.config()


@VALUES.reject("nan|finite")
def one_nan(work: Workshop) -> None:
    _spoilt(work, V_A, np.nan)


@VALUES.reject("nan|finite")
def one_nan_in_bfloat16(work: Workshop) -> None:
    _spoilt(work, O_B, np.nan, bfloat16)


@VALUES.reject("inf|finite")
def one_infinity(work: Workshop) -> None:
    _spoilt(work, O_B, np.inf)


@VALUES.reject("inf|finite")
def minus_infinity_in_float16(work: Workshop) -> None:
    _spoilt(work, V_A, -np.inf, lambda array: array.astype(np.float16))


@VALUES.reject("bfloat16|finite")
def beyond_bfloat16(work: Workshop) -> None:
    _spoilt(work, O_B, 3.4e38)


@VALUES.reject("large|finite")
def an_update_that_overflows(work: Workshop) -> None:
    work.weights({name: array * np.float32(1e15) for name, array in work.lora().items()})
    work.config()


@VALUES.reject("rank|limit")
def above_the_largest_rank(work: Workshop) -> None:
    work.weights(work.lora(32, layers=[0, 1]))
    work.config(r=32, lora_alpha=64)


@VALUES.reject("rank|limit")
def above_the_largest_rank_by_a_pattern(work: Workshop) -> None:
    work.weights(work.lora(8, ["self_attn.v_proj"]) | work.lora(24, ["self_attn.q_proj"]))
    work.config(rank_pattern={"q_proj": 24}, target_modules=["q_proj", "v_proj"])


@VALUES.reject("rank")
def a_config_of_half_the_rank(work: Workshop) -> None:
    work.weights(work.lora(16))
    work.config(r=8)


@VALUES.reject("rank")
def a_config_of_twice_the_rank(work: Workshop) -> None:
    work.weights(work.lora(8))
    work.config(r=16)


@VALUES.reject("rank")
def one_module_of_another_rank(work: Workshop) -> None:
    work.weights(work.lora() | work.lora(4, ["self_attn.k_proj"]))
    work.config()


@VALUES.reject("rank r")
def a_rank_of_zero(work: Workshop) -> None:
    work.sound(r=0)


@VALUES.reject("rank r")
def a_rank_as_text(work: Workshop) -> None:
    work.sound(r="8")
