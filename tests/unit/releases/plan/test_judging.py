from dataclasses import replace

import pytest

from registry.documents.read import DocumentError
from releases.judge.settings import Allowance, JudgeSettings
from releases.plan.document import PlanDocument
from releases.plan.judging import judge_settings
from releases.plan.parse import parse_plan


def of_first_canary(text: str) -> JudgeSettings:
    plan = parse_plan(text)
    return judge_settings(plan, plan.canary[0])


def test_a_plan_that_says_nothing_is_judged_as_the_judge_does_it() -> None:
    assert of_first_canary("{}") == replace(JudgeSettings(), steps=3)


def test_percentage_points_become_shares_and_times_stay() -> None:
    found = of_first_canary(
        "judge: {errors: {matters: {absolute: 1}, margin: {absolute: 2, relative: 0.5}},"
        " ttft: {margin: {absolute: 70, relative: 0.3}, ceiling: 900, minimum: 7, is_needed: false}}"
    )
    assert found.errors is not None
    assert (found.errors.matters, found.errors.margin) == (Allowance(0.01), Allowance(0.02, 0.5))
    assert found.ttft is not None
    assert (found.ttft.margin, found.ttft.ceiling) == (Allowance(70, 0.3), 900)
    assert (found.ttft.minimum, found.ttft.is_needed) == (7, False)
    assert found.ttft.matters == Allowance(20, 0.1)


def test_what_is_null_is_not_judged() -> None:
    found = of_first_canary("judge: {ttft: null, cost: null, quality: null, total: null}")
    assert found.errors is not None
    assert found.tests == 1


def test_each_judged_step_has_its_share_of_false_alarms() -> None:
    text = "shadow: null\ncanary: [{percent: 1}, {percent: 2}, {percent: 3}, {percent: 4}]"
    assert of_first_canary(text).steps == 4
    assert of_first_canary("shadow: {}\ncanary: [{percent: 1}]").steps == 2


def test_a_shadow_is_judged_by_what_is_known_of_it() -> None:
    plan = parse_plan("shadow: {agreement_floor: 0.6}")
    assert plan.shadow is not None
    found = judge_settings(plan, plan.shadow)
    assert (found.ttft, found.cost, found.quality) == (None, None, None)
    assert found.agreement is not None
    assert found.agreement.floor == 0.6


def test_the_smallest_floor_has_a_slack_below_it() -> None:
    plan = parse_plan("shadow: {agreement_floor: 0.01}")
    assert plan.shadow is not None
    floor = judge_settings(plan, plan.shadow).agreement
    assert floor is not None
    assert 0 < floor.slack < floor.floor


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("judge: {errors: {margin: {absolute: 0.1}}}", "judge.errors: What matters may not be above the margin"),
        ("judge: {errors: {margin: {absolute: 100, relative: 1}}}", "judge.errors: The margin of a share is below 1"),
        ("judge: {total: {margin: {absolute: 0, relative: 0}}}", "judge.total: An allowance"),
        ("judge: {quality: {ceiling: 3}}", "ceilings for times and costs alone"),
        ("judge: {errors: null, total: null}", "At least one metric is judged"),
    ],
)
def test_a_plan_that_no_judge_can_follow_is_refused_when_it_is_written(text: str, told: str) -> None:
    with pytest.raises(DocumentError, match=told):
        parse_plan(text)


def test_the_usual_plan_is_judged_at_every_step() -> None:
    plan = PlanDocument()
    assert plan.shadow is not None
    assert judge_settings(plan, plan.shadow).tests
    assert all(judge_settings(plan, step).tests for step in plan.canary)
