"""Whether a version keeps to its tenant's gates. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from registry.evaluation import Gates
from workers.evaluation.metrics import Metrics

_ROUNDING: Final = 1e-9
Value = float | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """One gate with a bound.

    Attributes:
        gate: its name.
        bound: what the tenant set.
        value: what was measured; None when there was nothing to measure it on.
        is_kept: whether the value is within the bound; never when nothing was measured.

    """

    gate: str
    bound: float
    value: float | None
    is_kept: bool


def judge(
    gates: Gates, candidate: Metrics, current: Metrics | None, *, is_served: bool = False
) -> tuple[Judgement, ...]:
    """Every gate with a bound, in the order of `Gates`.

    The relative ones are passed over while nothing is served; when something is (`is_served`) but was not measured,
    none of them is kept.
    """
    judged = []
    for gate, bound in gates.closed.items():
        if gate in _ABSOLUTE:
            value = _ABSOLUTE[gate](candidate)
        elif current is not None:
            value = _RELATIVE[gate](candidate, current)
        elif is_served:
            value = None
        else:
            continue
        judged.append(Judgement(gate, bound, value, is_kept=_is_kept(gate, bound, value)))
    return tuple(judged)


def _is_kept(gate: str, bound: float, value: Value) -> bool:
    if value is None:
        return False
    return value >= bound - _ROUNDING if gate.startswith("min_") else value <= bound + _ROUNDING


def _increase(candidate: Value, current: Value) -> Value:
    return None if candidate is None or current is None else candidate - current


def _ratio(candidate: Value, current: Value) -> Value:
    return None if candidate is None or current is None else candidate / current - 1.0


_ABSOLUTE: Final[dict[str, Callable[[Metrics], Value]]] = {
    "max_perplexity": lambda it: it.perplexity,
    "min_exact_agreement": lambda it: it.exact_agreement,
    "min_token_agreement": lambda it: it.token_agreement,
    "max_forbidden_hits": lambda it: it.forbidden_hits,
    "max_mean_kl": lambda it: it.mean_kl,
}
_RELATIVE: Final[dict[str, Callable[[Metrics, Metrics], Value]]] = {
    "max_perplexity_increase": lambda it, now: _ratio(it.perplexity, now.perplexity),
    "max_exact_agreement_drop": lambda it, now: _increase(now.exact_agreement, it.exact_agreement),
    "max_token_agreement_drop": lambda it, now: _increase(now.token_agreement, it.token_agreement),
    "max_forbidden_hits_increase": lambda it, now: _increase(it.forbidden_hits, now.forbidden_hits),
    "max_mean_kl_increase": lambda it, now: _increase(it.mean_kl, now.mean_kl),
}
