from client.models import Check, EvaluationGates, ValidationReport


def test_reasons_are_failures_then_warnings_and_nothing_that_was_not_checked() -> None:
    checks = (
        Check("evaluation", "warn", "not_checked", "nothing is known"),
        Check("numerics", "warn", "outlier", "large"),
        Check("config", "fail", "bias", "no bias"),
        Check("files", "pass", "ok", "whole"),
    )
    report = ValidationReport("reject", checks)
    assert [check.code for check in report.reasons] == ["bias", "outlier"]


def test_the_bounds_of_gates_are_all_but_what_a_gate_does() -> None:
    bounds = EvaluationGates(enforcement="warn", max_mean_kl=0.5).bounds
    assert len(bounds) == 10
    assert {name: bound for name, bound in bounds.items() if bound is not None} == {"max_mean_kl": 0.5}
