"""The steps of a release, in order, and the digest that says what it is: both follow from its plan."""

import hashlib
from collections.abc import Mapping
from typing import Any

import rfc8785

from releases.plan.document import PlanDocument
from releases.states import StepKind


def steps_of(plan: PlanDocument) -> list[tuple[StepKind, dict[str, Any]]]:
    """Each step's kind with its section of the plan as JSON; the last one promotes and has none."""
    return [
        (StepKind.PREWARM, plan.prewarm.model_dump(mode="json")),
        (StepKind.EVALUATE, plan.evaluate.model_dump(mode="json")),
        *([(StepKind.SHADOW, plan.shadow.model_dump(mode="json"))] if plan.shadow else []),
        *((StepKind.CANARY, step.model_dump(mode="json")) for step in plan.canary),
        (StepKind.PROMOTE, {}),
    ]


def release_digest(*, alias: str, stable: str, candidate: str, plan: Mapping[str, Any]) -> str:
    """SHA-256 of what a release does, as canonical JSON; it is what people approve.

    ``stable`` and ``candidate`` are root digests, ``plan`` has every default written out.
    """
    does = {"alias": alias, "stable": stable, "candidate": candidate, "plan": dict(plan)}
    return hashlib.sha256(rfc8785.dumps(does)).hexdigest()
