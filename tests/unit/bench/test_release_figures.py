import pytest

from bench.release.figures import LATEST_S, calm_of, harm_of, harmed_by
from bench.release.load import Answer
from bench.release.plan import Plan, template_text
from bench.release.relay import Fault
from releases.plan.judging import judge_settings
from releases.plan.parse import parse_plan

STABLE, CANDIDATE = "v1", "v2"


def answer(
    began: float,
    version: str = STABLE,
    *,
    session: str = "one",
    status: int = 200,
    first_s: float = 0.1,
    text: str = "well",
    took: float = 0.2,
) -> Answer:
    reason = "" if status == 200 else "broken"
    return Answer(began, "acme", session, "?", began + took, first_s, status, version, text=text, reason=reason)


def is_good(found: Answer) -> bool:
    return found.text == "well"


def test_only_what_began_while_a_release_ran_counts_for_it() -> None:
    answers = [answer(0.9, status=502), answer(1), answer(2, CANDIDATE, text="odd"), answer(3, status=503), answer(4)]

    calm = calm_of(answers, began=1, ended=4, candidate=CANDIDATE, is_good=is_good)

    assert (calm.requests, calm.failed, calm.by_candidate, calm.bad) == (3, 1, 1, 1)


def test_a_user_who_had_the_candidate_is_taken_back_by_a_later_answer_of_stable() -> None:
    answers = [
        answer(1, session="one"),
        answer(2, CANDIDATE, session="one"),
        answer(2.1, session="one"),  # asked before the candidate had answered
        answer(3, session="one"),
        answer(3, session="two"),
        answer(4, CANDIDATE, session="two"),
    ]

    assert calm_of(answers, began=0, ended=9, candidate=CANDIDATE, is_good=is_good).taken_back == 1


def test_harm_is_told_from_what_failed_elsewhere_and_from_what_came_too_late() -> None:
    answers = [
        answer(1, CANDIDATE, status=502),  # over before the fault began
        answer(1.9, CANDIDATE),
        answer(3, CANDIDATE, status=502),
        answer(4, status=503),
        answer(5 - LATEST_S / 2, CANDIDATE),
        answer(5 + LATEST_S / 2, CANDIDATE, status=502),
        answer(5 + LATEST_S * 2, CANDIDATE),
    ]

    harm = harm_of(
        answers, onset=2, ended=5, candidate=CANDIDATE, is_harmed=harmed_by(Fault.FAILING, slow_s=1, is_good=is_good)
    )

    assert (harm.detect_s, harm.requests, harm.by_candidate) == (3, 4, 3)
    assert (harm.harmed, harm.elsewhere, harm.late, harm.nearby) == (2, 1, 1, 3)
    assert harm.late_ms == pytest.approx(2000 * LATEST_S)


@pytest.mark.parametrize(
    ("fault", "harmed"),
    [
        (Fault.SLOW, answer(1, CANDIDATE, first_s=0.5)),
        (Fault.FAILING, answer(1, CANDIDATE, status=502)),
        (Fault.WORSE, answer(1, CANDIDATE, text="babble")),
    ],
)
def test_each_fault_harms_in_its_own_way(fault: Fault, harmed: Answer) -> None:
    is_harmed = harmed_by(fault, slow_s=0.5, is_good=is_good)

    assert is_harmed(harmed)
    assert not is_harmed(answer(1, CANDIDATE))


@pytest.mark.parametrize("shadow", [True, False])
def test_the_template_of_a_run_is_a_plan_that_can_be_judged(shadow: bool) -> None:
    plan = parse_plan(template_text(Plan(), shadow=shadow))

    assert [(step.tenants, step.percent) for step in plan.canary] == [
        (("pilot",), 0), (("pilot",), 10), (("pilot",), 50)
    ]  # fmt: skip
    assert (plan.shadow is not None) is shadow
    assert judge_settings(plan, plan.canary[0]).quality is not None
