"""What follows from a plan: the steps of a release, and the digest that people approve."""

from typing import Any

from releases.plan.document import PlanDocument
from releases.plan.sequence import release_digest, steps_of
from releases.states import StepKind

WHOLE: dict[str, Any] = {
    "alias": "acme/support",
    "stable": "a" * 64,
    "candidate": "b" * 64,
    "plan": PlanDocument().model_dump(),
}


def test_a_release_prewarms_evaluates_shadows_gives_shares_and_promotes() -> None:
    kinds = [kind for kind, _spec in steps_of(PlanDocument())]
    assert kinds == [
        StepKind.PREWARM,
        StepKind.EVALUATE,
        StepKind.SHADOW,
        StepKind.CANARY,
        StepKind.CANARY,
        StepKind.PROMOTE,
    ]


def test_a_step_has_its_section_of_the_plan_with_every_default() -> None:
    steps = dict(steps_of(PlanDocument()))
    assert steps[StepKind.CANARY] == {
        "percent": 50.0,
        "tenants": [],
        "min_minutes": 10.0,
        "min_samples": 200,
        "longest_minutes": 240.0,
        "gate": False,
    }
    assert steps[StepKind.PROMOTE] == {}


def test_shadow_and_canary_steps_can_be_left_out() -> None:
    kinds = [kind for kind, _spec in steps_of(PlanDocument(shadow=None, canary=()))]
    assert kinds == [StepKind.PREWARM, StepKind.EVALUATE, StepKind.PROMOTE]


def test_the_digest_says_every_part_of_what_a_release_does() -> None:
    digest = release_digest(**WHOLE)
    assert digest == release_digest(**WHOLE)
    other_plan = PlanDocument(approvals=0).model_dump()
    changed = [WHOLE | {"alias": "acme/other"}, WHOLE | {"stable": "c" * 64}, WHOLE | {"candidate": "c" * 64}]
    changed.append(WHOLE | {"plan": other_plan})
    assert len({digest, *(release_digest(**facts) for facts in changed)}) == 5
