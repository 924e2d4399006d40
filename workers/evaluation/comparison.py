"""Two versions' figures on one evaluation set, out of their validation reports, and what gates say of them. Pure."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from registry.evaluation import Gates
from workers.evaluation.gates import Judgement, judge
from workers.evaluation.metrics import Metrics
from workers.evaluation.ports import Voice

# The check of a validation report that has the figures.
EVALUATION: Final = "evaluation"
# Its code where only a part of the examples was evaluated.
INCOMPLETE: Final = "incomplete"


def figures_in(report: Mapping[str, Any], *, set_digest: str) -> Metrics | None:
    """The version's own figures on the examples with that digest; None if the report has none on all of them."""
    found = [check for check in report["checks"] if check["name"] == EVALUATION]
    if any(check["code"] == INCOMPLETE for check in found):
        return None
    evidence = next((each["evidence"] for each in found if each["evidence"].get("set_digest") == set_digest), None)
    return None if evidence is None else Metrics(**evidence["metrics"][Voice.CANDIDATE.value])


def why_without(report: Mapping[str, Any]) -> str:
    """Why the report has no figures, as it says itself."""
    found = [check for check in report["checks"] if check["name"] == EVALUATION]
    told = [check["message"] for check in sorted(found, key=lambda check: check["code"] != INCOMPLETE)]
    return next(iter(told), "the adapter was not evaluated")


def broken_gates(gates: Gates, candidate: Metrics, stable: Metrics | None) -> tuple[Judgement, ...]:
    """The gates that the candidate does not keep; those that compare are not kept without the other's figures."""
    return tuple(each for each in judge(gates, candidate, stable, is_served=True) if not each.is_kept)


def told(candidate: Metrics, stable: Metrics | None) -> str:
    """The candidate's figures in words, the stable version's beside them."""
    parts = []
    for name, value in asdict(candidate).items():
        if name in {"examples", "references"} or value is None:
            continue
        other = None if stable is None else getattr(stable, name)
        beside = "" if other is None else f" (stable {other:.4g})"
        parts.append(f"{name.replace('_', ' ')} {value:.4g}{beside}")
    return f"on {candidate.examples} examples: {', '.join(parts)}"
