from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from cachecontrol.drift import MAX_NAMES, NodeReport, Strangers, may_be_loaded, new_strangers, strangers, to_where
from cachecontrol.states import Desired, ErrorClass, Observed

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)


@dataclass
class Row:
    desired: str = Desired.GPU.value
    observed: str = Observed.LOADED.value
    generation: int = 1
    acted_generation: int = 1
    error_class: str = ""
    state_changed_at: datetime = NOW - timedelta(minutes=1)


REPORT = NodeReport(boot_id="b", engine_healthy=True)
LOADED = replace(REPORT, loaded=frozenset({"lk-a"}), on_disk=frozenset({"lk-a"}))


def where(row: Row, report: NodeReport) -> Observed | None:
    return to_where("lk-a", row, report, NOW)


def test_what_the_engine_lists_is_where_it_was_seen() -> None:
    assert where(Row(), LOADED) is None


@pytest.mark.parametrize(("on_disk", "place"), [({"lk-a"}, Observed.ON_DISK), (set(), Observed.ABSENT)])
def test_what_the_engine_does_not_list_any_more_is_on_disk_or_gone(on_disk: set[str], place: Observed) -> None:
    assert where(Row(), replace(REPORT, on_disk=frozenset(on_disk))) is place


def test_what_the_engine_has_from_another_path_is_not_the_version() -> None:
    assert where(Row(), replace(LOADED, mismatched=frozenset({"lk-a"}))) is Observed.ON_DISK


def test_what_changed_lately_may_have_overtaken_the_report() -> None:
    assert where(Row(state_changed_at=NOW - timedelta(seconds=2)), REPORT) is None


def test_an_engine_that_is_not_healthy_proves_nothing_but_the_disk_does() -> None:
    sick = replace(REPORT, engine_healthy=False)
    assert where(Row(), sick) is None
    assert where(Row(observed=Observed.ON_DISK), sick) is Observed.ABSENT


@pytest.mark.parametrize("observed", [Observed.ABSENT, Observed.FETCHING, Observed.LOADING, Observed.DRAINING])
def test_what_is_on_its_way_is_left_to_the_command(observed: Observed) -> None:
    assert where(Row(observed=observed), REPORT) is None


@pytest.mark.parametrize(
    ("row", "may"),
    [
        (Row(), True),
        (Row(observed=Observed.ABSENT), True),
        (Row(desired=Desired.ABSENT, observed=Observed.DRAINING), True),
        (Row(desired=Desired.ABSENT, observed=Observed.ABSENT), False),
        (Row(desired=Desired.DISK, observed=Observed.LOADED), True),
        (Row(desired=Desired.DISK, observed=Observed.DRAINING), True),
        (Row(desired=Desired.DISK, observed=Observed.ON_DISK), False),
        (Row(observed=Observed.FAILED, error_class=ErrorClass.PERMANENT), False),
        (Row(observed=Observed.FAILED, error_class=ErrorClass.TRANSIENT), True),
    ],
)
def test_only_what_is_wanted_or_on_its_way_out_may_be_in_the_engine(row: Row, may: bool) -> None:
    assert may_be_loaded(row) is may


def test_names_that_nobody_asked_for_are_alarmed_of_and_those_on_their_way_out_are_not() -> None:
    held = {
        "lk-a": Row(),
        "lk-gone": Row(desired=Desired.ABSENT, observed=Observed.ABSENT),
        "lk-just-gone": Row(desired=Desired.ABSENT, observed=Observed.ABSENT, state_changed_at=NOW),
        "lk-broken": Row(observed=Observed.FAILED, error_class=ErrorClass.PERMANENT),
    }
    report = replace(REPORT, loaded=frozenset({*held, "by-hand"}), mismatched=frozenset({"lk-a", "by-hand"}))
    assert strangers(report, held, NOW) == Strangers(("by-hand", "lk-gone"), ("lk-a",))


def test_of_very_many_strangers_only_so_many_are_named() -> None:
    report = replace(REPORT, loaded=frozenset(f"x{number}" for number in range(MAX_NAMES + 1)))
    assert len(strangers(report, {}, NOW).unknown) == MAX_NAMES


def test_a_stranger_is_told_of_once() -> None:
    before, now = Strangers(("a",), ("m",)), Strangers(("a", "b"), ("m",))
    assert new_strangers(now, before) == Strangers(("b",), ())
