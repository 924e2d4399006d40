"""Marks joined to the requests that they are about, in a real database."""

from datetime import datetime, timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from cachecontrol.models import GatewayFeedback, GatewayRequest
from registry.models import Version
from tests.factories.registry import make_version
from tests.factories.requests import make_mark, make_request

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


def joined(version: Version, *, since: datetime, name: str = "quality") -> dict[str, float]:
    """The marks of the version's requests from ``since`` on, by request, as ``cachecontrol/sql/feedback.sql`` says."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.request_id, m.mark FROM gateway_request r"
            " JOIN gateway_marks(%(since)s, %(name)s) m USING (tenant, request_id)"
            " WHERE r.at >= %(since)s AND r.version_id = %(version)s AND NOT r.is_shadow",
            {"since": since, "name": name, "version": version.pk},
        )
        rows = cursor.fetchall()
    assert len(rows) == len(dict(rows))
    return dict(rows)


@pytest.fixture
def version() -> Version:
    return make_version()


def test_a_mark_finds_its_request_whichever_came_first(version: Version) -> None:
    now = timezone.now()
    make_mark(make_request(version, at=now, request_id="early"), 0.75)
    make_mark(GatewayRequest(tenant=version.adapter.tenant.name, request_id="late"), 0.25)
    assert joined(version, since=now) == {"early": 0.75}
    make_request(version, at=now, request_id="late")
    assert joined(version, since=now) == {"early": 0.75, "late": 0.25}


def test_the_last_mark_of_a_request_counts_whatever_was_written_last(version: Version) -> None:
    now = timezone.now()
    request = make_request(version, at=now, request_id="r")
    make_mark(request, 1.0, at=now + 2 * SECOND)
    make_mark(request, 0.0, at=now + SECOND)
    assert joined(version, since=now) == {"r": 1.0}
    make_mark(request, 0.5, at=now + 3 * SECOND)
    assert joined(version, since=now) == {"r": 0.5}


def test_the_last_mark_says_when_it_came(version: Version) -> None:
    now = timezone.now()
    request = make_request(version, at=now, request_id="r")
    for later in (1, 2):
        make_mark(request, 1.0, at=now + later * SECOND)
    with connection.cursor() as cursor:
        cursor.execute("SELECT tenant, request_id, mark, at FROM gateway_marks(%s)", [now])
        assert cursor.fetchall() == [(request.tenant, "r", 1.0, now + 2 * SECOND)]


def test_each_name_has_marks_of_its_own(version: Version) -> None:
    now = timezone.now()
    request = make_request(version, at=now, request_id="r")
    make_mark(request, 1.0)
    make_mark(request, 0.0, name="tone")
    assert joined(version, since=now) == {"r": 1.0}
    assert joined(version, since=now, name="tone") == {"r": 0.0}
    assert joined(version, since=now, name="other") == {}


def test_a_mark_by_another_tenant_counts_for_nothing(version: Version) -> None:
    request = make_request(version, at=timezone.now())
    make_mark(request, 0.0, tenant="somebody-else")
    assert joined(version, since=request.at) == {}


def test_a_mirrored_request_isnt_marked(version: Version) -> None:
    now = timezone.now()
    request = make_request(version, at=now, request_id="r")
    candidate = make_version(adapter=version.adapter)
    make_request(candidate, at=now, request_id="r", is_shadow=True)
    make_mark(request, 1.0)
    assert joined(version, since=now) == {"r": 1.0}
    assert joined(candidate, since=now) == {}


def test_marks_of_requests_from_before_are_left_out_and_a_clock_that_is_behind_costs_none(version: Version) -> None:
    since = timezone.now()
    make_mark(make_request(version, at=since - SECOND, request_id="before"), 0.0)
    make_mark(make_request(version, at=since + SECOND, request_id="after"), 1.0, at=since - 20 * SECOND)
    assert joined(version, since=since) == {"after": 1.0}


@pytest.mark.parametrize("mark", [-0.01, 1.01, float("nan"), float("inf")])
def test_the_database_takes_no_mark_outside_of_0_to_1(version: Version, mark: float) -> None:
    request = make_request(version)
    with pytest.raises(IntegrityError), transaction.atomic():
        make_mark(request, mark)
    assert not GatewayFeedback.objects.exists()


def test_the_joins_plan_is_one_with_the_query_around_it(version: Version) -> None:
    """A function that is called for its rows would be a wall between the marks and the requests' indexes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "EXPLAIN SELECT count(*) FROM gateway_request r JOIN gateway_marks(%(since)s) m USING (tenant, request_id)"
            " WHERE r.at >= %(since)s AND r.version_id = %(version)s AND NOT r.is_shadow",
            {"since": timezone.now() - 60 * SECOND, "version": version.pk},
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Function Scan" not in plan
    assert "gateway_feedback" in plan
