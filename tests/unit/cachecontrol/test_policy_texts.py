"""Texts of policies: which line a fault is on, and one more pin."""

import pytest

from cachecontrol.policy.faults import find_faults, line_of
from cachecontrol.policy.parse import parse_policy
from cachecontrol.policy.pinning import with_pin
from cachecontrol.policy.tenants import Pin

PIN = Pin(tenant="acme", adapter="tone", version="v1")


def test_each_fault_has_its_line() -> None:
    text = "base_model: b\nloading:\n  queue_limit: many\npins:\n  - {tenant: acme}\nnonsense: 1\n"
    assert [(fault.path, fault.line) for fault in find_faults(text)] == [
        ("loading.queue_limit", 3),
        ("pins[0].adapter", 5),
        ("nonsense", 6),
    ]


def test_a_sound_policy_has_no_faults_and_a_path_that_leads_nowhere_no_line() -> None:
    assert find_faults("base_model: b\n") == ()
    assert line_of("base_model: b\n", "loading.queue_limit") is None


@pytest.mark.parametrize(
    "text",
    [
        "base_model: b\n# kept\n",
        "base_model: b",
        "base_model: b\npins:\n  - {tenant: acme, adapter: law, alias: prod}\n",
        "base_model: b\npins:  # ours\n- {tenant: acme, adapter: law, alias: prod}\nloading: {queue_limit: 3}\n",
        "base_model: b\npins: [{tenant: acme, adapter: law, alias: prod}]\n",
        "{base_model: b}\n",
    ],
)
def test_a_pin_is_added_and_nothing_else_changes(text: str) -> None:
    before, after = parse_policy(text), parse_policy(with_pin(text, PIN))
    assert set(after.pins) == {*before.pins, PIN}
    assert after.model_copy(update={"pins": ()}) == before.model_copy(update={"pins": ()})


def test_comments_stay_and_a_pin_that_is_there_changes_nothing() -> None:
    text = with_pin("base_model: b\n# kept\n", PIN)
    assert "# kept" in text
    assert with_pin(text, PIN) == text
