import pytest

from registry.documents.read import DocumentError
from releases.plan.document import PlanDocument
from releases.plan.parse import digest_of, parse_plan, plan_of


def test_an_empty_plan_is_a_careful_release() -> None:
    plan = parse_plan("{}")
    assert plan == PlanDocument()
    assert (plan.approvals, [step.percent for step in plan.canary]) == (1, [10.0, 50.0])
    assert plan.shadow is not None


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        ("", "", "is a mapping"),
        ("[1]", "", "is a mapping"),
        ("canary: [{percent: 10}, {percent: 5}]", "", "canary step 2 takes the candidate away"),
        ("canary: [{tenants: [acme]}, {percent: 5}]", "", "canary step 2 takes the candidate away"),
        ("canary: [{}]", "canary[0]", "names tenants or a percent"),
        ("canary: [{percent: 101}]", "canary[0].percent", "less than or equal to 100"),
        ("canary: [{percent: '10'}]", "canary[0].percent", "valid number"),
        ("canary: [{tenants: [A/B], percent: 1}]", "canary[0].tenants[0]", "a-z"),
        ("shadow: {min_minutes: 10, longest_minutes: 5}", "shadow", "longest_minutes is at least min_minutes"),
        ("aprovals: 2", "aprovals", "no such key"),
        ("approvals: -1", "approvals", "greater than or equal to 0"),
        (r'canary: ["\U00110000"]', "", r"out of range \(line 1, column 13\)"),
        (r'canary: ["\UFFFFFFFF"]', "", r"out of range \(line 1, column 13\)"),
        (f"%YAML 1.{'9' * 5000}\n---\n{{}}", "", "out of range"),
        ("judge: {ttft: {matters: {absolute: 90}, margin: {absolute: 10}}}", "", "judge.ttft"),
    ],
)
def test_what_no_release_can_be_made_by_is_refused_by_its_path(text: str, field: str, said: str) -> None:
    with pytest.raises(DocumentError, match=said) as refused:
        parse_plan(text)
    assert refused.value.field == field


def test_steps_may_be_left_out() -> None:
    plan = parse_plan("shadow: null\ncanary: []\napprovals: 0")
    assert (plan.shadow, plan.canary, plan.approvals) == (None, (), 0)


def test_the_digest_is_of_what_is_meant_and_not_of_how_it_is_written() -> None:
    assert digest_of(parse_plan("approvals: 1 # one\n")) == digest_of(parse_plan("{}"))
    assert digest_of(parse_plan("approvals: 2")) != digest_of(parse_plan("{}"))


def test_a_plan_that_is_kept_as_json_is_read_again_as_it_was() -> None:
    plan = parse_plan("canary: [{tenants: [acme, beta], percent: 12.5, gate: true}]")
    assert plan_of(plan.model_dump(mode="json")) == plan
