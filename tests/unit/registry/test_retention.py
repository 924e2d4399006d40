from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.retention import Facts, Keep, keep_reason, plan_digest
from registry.states import VersionState

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)
KEEP = timedelta(days=30)


def facts(state: VersionState = VersionState.APPROVED, *, age_days: float = 31) -> Facts:
    return Facts(
        version_id=uuid4(),
        state=state,
        state_changed_at=NOW - timedelta(days=age_days),
        is_purged=False,
        is_aliased=False,
        is_rollback_target=False,
        is_on_nodes=False,
    )


@pytest.mark.parametrize(
    "state",
    [
        VersionState.REJECTED,
        VersionState.CANDIDATE,
        VersionState.APPROVED,
        VersionState.YANKED,
        VersionState.REVOKED,
    ],
)
def test_what_nothing_refers_to_goes_after_its_days(state: VersionState) -> None:
    assert keep_reason(facts(state, age_days=30), keep=KEEP, now=NOW) is None
    assert keep_reason(facts(state, age_days=29.9), keep=KEEP, now=NOW) is Keep.RECENT


@pytest.mark.parametrize("state", [VersionState.UPLOADING, VersionState.VALIDATING])
def test_what_is_on_its_way_stays(state: VersionState) -> None:
    assert keep_reason(facts(state, age_days=900), keep=KEEP, now=NOW) is Keep.IN_PROGRESS


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ("is_aliased", Keep.ALIASED),
        ("is_rollback_target", Keep.ROLLBACK),
        ("is_on_nodes", Keep.ON_NODES),
        ("is_purged", Keep.PURGED),
    ],
)
def test_what_is_in_use_stays_however_old(flag: str, reason: Keep) -> None:
    flags: dict[str, Any] = {flag: True}
    used = replace(facts(age_days=900), **flags)
    assert keep_reason(used, keep=KEEP, now=NOW) is reason


def test_a_plan_is_called_by_what_it_removes_in_any_order() -> None:
    first, second = uuid4(), uuid4()
    assert plan_digest([first, second]) == plan_digest([second, first])
    assert plan_digest([first]) != plan_digest([second])


@given(st.floats(0, 100), st.integers(1, 50), st.integers(0, 50))
def test_keeping_longer_never_removes_more(age_days: float, days: int, more: int) -> None:
    shorter = keep_reason(facts(age_days=age_days), keep=timedelta(days=days), now=NOW)
    longer = keep_reason(facts(age_days=age_days), keep=timedelta(days=days + more), now=NOW)
    assert shorter is None or longer is not None
