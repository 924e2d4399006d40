from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from cachecontrol.models import GatewayRequest, GatewayShadow
from cachecontrol.requests import windows
from cachecontrol.requests.departures import find_last_answers
from cachecontrol.requests.windows import count_window
from registry.models import Version
from releases.judge.facts import Marks, Window, class_of
from releases.models import Alias, AliasGrant
from releases.ports import Departure, Traffic
from tests.factories.registry import make_tenant, make_version
from tests.factories.releases import make_alias
from tests.factories.requests import make_mark, make_request

pytestmark = pytest.mark.django_db
SLICE_S = 20.0


@pytest.fixture
def alias() -> Alias:
    return make_alias()


@pytest.fixture
def candidate(alias: Alias) -> Version:
    return make_version(adapter=alias.adapter)


@pytest.fixture
def since() -> datetime:
    return timezone.now() - timedelta(minutes=5)


@pytest.fixture
def ask(alias: Alias, candidate: Version, since: datetime) -> Any:
    """Record a request of the alias that ended so many seconds after the window began."""

    def record(ended_s: float, *, canary: bool = False, **facts: Any) -> GatewayRequest:
        total_ms = facts.pop("total_ms", 100)
        known = {
            "at": since + timedelta(seconds=ended_s, milliseconds=-total_ms),
            "alias": alias.name,
            "side": "canary" if canary else "stable",
            "total_ms": total_ms,
            "stream": True,
            "engine_ms": 80,
        }
        return make_request(candidate if canary else alias.version, **(known | facts))

    return record


@pytest.fixture
def count(alias: Alias, candidate: Version, since: datetime) -> Any:
    def window(*, slices: int = 5, is_shadow: bool = False) -> Window:
        found = count_window(
            Traffic(
                alias_id=alias.pk,
                stable_id=alias.version_id,
                candidate_id=candidate.pk,
                since=since,
                until=since + timedelta(seconds=SLICE_S * slices),
                slice_s=SLICE_S,
                is_shadow=is_shadow,
            )
        )
        assert found is not None
        return found

    return window


def test_a_window_without_requests_is_empty(count: Any) -> None:
    assert count() == Window()
    assert count(is_shadow=True) == Window()


def test_requests_lie_in_the_slice_in_which_they_ended(ask: Any, count: Any) -> None:
    for ended_s in (1, 19.9, 20.1, 50, 99.9):
        ask(ended_s)
    ask(30, canary=True)
    ask(50, canary=True, error_kind="engine_down", status=502)
    found = [(part.stable.requests, part.canary.requests, part.canary.errors) for part in count().slices]
    assert found == [(2, 0, 0), (1, 1, 0), (1, 1, 1), (1, 0, 0)]


def test_a_slice_that_is_not_over_is_left_out(ask: Any, count: Any) -> None:
    for ended_s in (10, 30, 50):
        ask(ended_s)
    assert sum(part.stable.requests for part in count(slices=2).slices) == 2


def test_more_slices_leave_those_before_as_they_were(ask: Any, count: Any) -> None:
    for ended_s in range(1, 90):
        ask(ended_s, canary=ended_s % 3 == 0, total_ms=100 + 37 * ended_s, ttft_ms=ended_s)
    assert count(slices=4).slices[:3] == count(slices=3).slices


def test_what_began_before_the_window_is_in_none(ask: Any, count: Any) -> None:
    ask(1, total_ms=5000)
    assert count() == Window()


def test_measures_are_counted_in_the_classes_of_the_judge(ask: Any, count: Any) -> None:
    times = [1, 2, 3, 7, 8, 9, 64, 100, 1000, 1024, 4096, 60_000]
    for total_ms in times:
        ask(90, total_ms=total_ms, ttft_ms=max(1, total_ms // 2), engine_ms=total_ms)
    (part,) = count().slices
    assert sorted(part.stable.total.counts) == sorted({class_of(time) for time in times})
    assert part.stable.total.total == part.stable.cost.total == part.stable.ttft.total == len(times)
    assert part.stable.cost == part.stable.total
    assert set(part.stable.ttft.counts) == {class_of(max(1, time // 2)) for time in times}


def test_the_first_token_is_timed_of_streams_alone(ask: Any, count: Any) -> None:
    ask(10, stream=False)
    ask(11, stream=True)
    (part,) = count().slices
    assert (part.stable.total.total, part.stable.ttft.total) == (2, 1)


def test_failures_have_no_times(ask: Any, count: Any) -> None:
    ask(10, error_kind="engine_timeout", status=504, ttft_ms=30)
    (part,) = count().slices
    assert (part.stable.requests, part.stable.errors) == (1, 1)
    assert part.stable.total.total == part.stable.ttft.total == part.stable.cost.total == 0


def test_a_clients_own_mistake_is_nobodys_request(ask: Any, count: Any) -> None:
    ask(10, error_kind="engine_refused", status=400)
    assert sum(part.stable.requests for part in count().slices) == 0
    ask(10, error_kind="quota_exceeded", status=429)
    assert [(part.stable.requests, part.stable.errors) for part in count().slices] == [(1, 1)]


def test_who_left_before_the_first_token_has_waited_so_long(ask: Any, count: Any) -> None:
    ask(50, error_kind="client_gone", status=499, ttft_ms=0, total_ms=30_000)
    ask(50, error_kind="client_gone", status=499, ttft_ms=40, total_ms=10_000)
    (part,) = count().slices
    assert (part.stable.requests, part.stable.errors) == (0, 0)
    assert dict(part.stable.ttft.counts) == dict(part.stable.total.counts) == {class_of(30_000): 1}


@pytest.mark.parametrize(
    "facts",
    [
        {"fallback": "stable"},
        {"is_shadow": True},
        {"side": ""},
        {"side": "canary"},
        {"alias": "another"},
        {"tenant": "another"},
        {"version_id": uuid4()},
    ],
)
def test_what_is_not_compared_is_left_out(ask: Any, count: Any, facts: dict[str, Any]) -> None:
    ask(10, **facts)
    assert count() == Window()


def test_a_tenant_that_was_granted_the_alias_counts_by_its_own_name(ask: Any, count: Any, alias: Alias) -> None:
    grantee = make_tenant()
    AliasGrant.objects.create(alias=alias, tenant=grantee, name="theirs", granted_at=timezone.now())
    ask(10, tenant=grantee.name, alias="theirs", canary=True)
    ask(10, tenant=grantee.name)
    ask(10)
    assert [(part.canary.requests, part.stable.requests) for part in count().slices] == [(1, 1)]


def test_the_last_mark_of_an_answer_counts_in_the_slice_in_which_it_came(ask: Any, count: Any, since: datetime) -> None:
    good, bad = ask(10, canary=True), ask(10, canary=True)
    make_mark(good, 0.0, at=since + timedelta(seconds=11))
    make_mark(good, 1.0, at=since + timedelta(seconds=50))
    make_mark(bad, 0.25, at=since + timedelta(seconds=52))
    make_mark(bad, 1.0, at=since + timedelta(seconds=53), name="style")
    make_mark(ask(10), 0.5, at=since - timedelta(seconds=1))
    make_mark(ask(11), 0.5, at=since + timedelta(seconds=300))
    found = [(part.canary.quality, part.stable.quality) for part in count().slices]
    assert found == [(Marks(), Marks(1, 0.5)), (Marks(2, 1.25), Marks())]


def mirror(of: Alias, candidate: Version, since: datetime, ended_s: float, **facts: Any) -> None:
    known = {
        "at": since + timedelta(seconds=ended_s, milliseconds=-200),
        "request_id": f"req-{uuid4().hex}",
        "tenant": of.tenant.name,
        "alias": of.name,
        "stable_version_id": of.version_id,
        "candidate_version_id": candidate.pk,
        "agreement": 0.75,
        "stable_ms": 100,
        "candidate_ms": 200,
        "error_kind": "",
    }
    GatewayShadow.objects.create(**(known | facts))


def test_a_shadow_is_compared_with_the_answers_that_it_mirrors(
    ask: Any, count: Any, alias: Alias, candidate: Version, since: datetime
) -> None:
    for ended_s in (1, 2, 3):
        ask(ended_s, total_ms=500)
    ask(4, error_kind="engine_down", status=502)
    mirror(alias, candidate, since, 5)
    mirror(alias, candidate, since, 6, agreement=None, error_kind="engine_down")
    mirror(alias, candidate, since, 7, alias="another")
    mirror(alias, candidate, since, 8, candidate_version_id=uuid4())
    (part,) = count(is_shadow=True).slices
    assert (part.canary.requests, part.canary.errors) == (2, 1)
    assert (part.stable.requests, part.stable.errors) == (4, 1)
    assert dict(part.canary.total.counts) == {class_of(200): 1}
    assert dict(part.stable.total.counts) == {class_of(100): 1}
    assert part.agreement == Marks(1, 0.75)


def test_too_much_to_count_is_no_window(
    monkeypatch: pytest.MonkeyPatch, alias: Alias, candidate: Version, since: datetime
) -> None:
    monkeypatch.setattr(windows, "_MARKS", "SELECT 0, true, 1, pg_sleep(1) IS NULL")
    monkeypatch.setattr(windows, "_LIMIT_MS", 50)
    traffic = Traffic(
        alias_id=alias.pk,
        stable_id=alias.version_id,
        candidate_id=candidate.pk,
        since=since,
        until=timezone.now(),
        slice_s=SLICE_S,
        is_shadow=False,
    )
    assert count_window(traffic) is None


@pytest.mark.parametrize("value", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 1023, 1024, 1025, 2**20, 10**9])
def test_the_databases_class_is_the_judges(value: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT gateway_class_of_ms(%s), gateway_class_of_ms(NULL), gateway_class_of_ms(0)", [value])
        assert cursor.fetchone() == (class_of(value), None, class_of(1))


class TestDepartures:
    """An alias leaves its version: asked for a minute after ``since``, committed a second later."""

    def find(self, alias: Alias, since: datetime) -> Any:
        asked_at = since + timedelta(seconds=60)
        committed_at = asked_at + timedelta(seconds=1)
        return find_last_answers(
            Departure(
                alias_id=alias.pk,
                version_id=alias.version_id,
                asked_at=asked_at,
                committed_at=committed_at,
                until=since + timedelta(seconds=200),
            )
        )

    def test_the_last_answer_is_of_a_request_from_before(self, ask: Any, alias: Alias, since: datetime) -> None:
        ask(70, total_ms=30_000)
        ask(65, total_ms=30_000)
        ask(90, total_ms=40_000, error_kind="engine_down", status=502)
        found = self.find(alias, since)
        assert found.last_at == since + timedelta(seconds=70)
        assert found.strays == 0

    def test_what_was_over_before_the_click_is_no_answer_to_complain_of(
        self, ask: Any, alias: Alias, since: datetime
    ) -> None:
        ask(59)
        assert self.find(alias, since).last_at is None

    def test_what_began_later_is_a_stray_and_may_be_the_last(self, ask: Any, alias: Alias, since: datetime) -> None:
        ask(62)
        ask(63, alias="another")
        ask(64, is_shadow=True)
        ask(250)
        found = self.find(alias, since)
        assert (found.last_at, found.strays) == (since + timedelta(seconds=62), 1)
