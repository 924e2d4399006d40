import pytest

from workers.evaluation.patterns import matches


def test_patterns_are_found_anywhere_in_their_own_text() -> None:
    jobs = [("(?i)never", "I would NEVER do"), ("never", "NEVER"), (r"\d{3}", "call 112"), ("^a", "ba")]
    assert matches(jobs) == (True, False, True, False)


def test_a_search_that_never_ends_counts_as_found_and_spoils_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.evaluation.patterns.CPU_SECONDS", 1)
    jobs = [("(a+)+$", "a" * 40 + "b"), ("x", "abc")]
    assert matches(jobs) == (True, False)


def test_nothing_to_search_for_starts_no_process() -> None:
    assert matches([]) == ()
