"""The days of request records, in a real database and with the rights of the application's role."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from cachecontrol.models import GatewayFeedback, GatewayRequest, Lease, VersionHeat
from cachecontrol.requests.days import DAYS_AHEAD, days_in
from cachecontrol.services.heat import count_requests
from cachecontrol.services.requests.retention import tend_request_records
from deploy.embedded.postgres import APP, PostgresServer
from registry.actors import system_actor
from registry.models import AuditRecord, Version
from tests.factories.requests import make_mark, make_request

pytestmark = pytest.mark.django_db
ACTOR = system_actor("retention")
DAY = timedelta(days=1)


def today() -> date:
    return datetime.now(UTC).date()


def days(table: str = "gateway_request") -> list[date]:
    return days_in(relation for relation, _rows in rows_by_table(table))


def rows_by_table(table: str = "gateway_request") -> list[tuple[str, int]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text, (SELECT count(*) FROM gateway_request r WHERE r.tableoid = inhrelid)"
            " FROM pg_inherits WHERE inhparent = %s::regclass ORDER BY 1",
            [table],
        )
        return list(cursor.fetchall())


def call(statement: str, *inputs: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, inputs)
        return cursor.fetchone()[0]


def make_day(day: date) -> bool:
    return bool(call("SELECT gateway_records_make_day('gateway_request', %s)", day))


def tend() -> None:
    Lease.objects.all().delete()
    tend_request_records(actor=ACTOR)


@pytest.fixture
def application(postgres: PostgresServer, db: None) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the application's role."""
    url = postgres.url(APP, database=str(connection.settings_dict["NAME"]))
    with psycopg.connect(url, autocommit=True) as opened:
        yield opened


def test_days_are_there_from_the_migration_on_and_made_ahead() -> None:
    assert {today(), today() + DAY} <= set(days())
    tend()
    before = days()
    assert {today() + number * DAY for number in range(DAYS_AHEAD + 1)} <= set(before)
    for table in ("gateway_shadow", "gateway_feedback"):
        assert days(table)[-1] == today() + DAYS_AHEAD * DAY
    tend()
    assert days() == before


def test_a_day_that_was_kept_for_long_enough_goes_and_is_told_of(settings: Any) -> None:
    settings.REQUEST_RECORD_DAYS = 3
    for ago in (5, 4, 3):
        make_day(today() - ago * DAY)
    tend()
    assert days()[0] == today() - 3 * DAY
    record = AuditRecord.objects.get(action="platform:request_records:drop")
    assert json.loads(record.payload)["after"] == {"days": [str(today() - ago * DAY) for ago in (5, 4)]}
    tend()
    assert AuditRecord.objects.filter(action="platform:request_records:drop").count() == 1


def test_marks_are_kept_for_as_long_as_requests(version: Version, settings: Any) -> None:
    settings.REQUEST_RECORD_DAYS = 3
    request = make_request(version)
    for ago in (2, 10):
        make_mark(request, 1.0, at=timezone.now() - ago * DAY)
    call("SELECT gateway_records_make_day('gateway_feedback', %s)", today() - 9 * DAY)
    tend()
    assert [mark.at.date() for mark in GatewayFeedback.objects.all()] == [(timezone.now() - 2 * DAY).date()]
    assert days("gateway_feedback")[0] == today()
    record = AuditRecord.objects.get(action="platform:request_records:drop")
    assert json.loads(record.payload)["after"] == {"days": [str(today() - 9 * DAY)]}


def test_what_came_too_late_for_its_day_is_kept_for_as_long(version: Version, settings: Any) -> None:
    settings.REQUEST_RECORD_DAYS = 3
    for ago in (2, 10):
        make_request(version, at=timezone.now() - ago * DAY)
    assert dict(rows_by_table())["gateway_request_default"] == 2
    tend()
    assert [request.at.date() for request in GatewayRequest.objects.all()] == [(timezone.now() - 2 * DAY).date()]


def test_what_came_before_its_day_was_made_moves_there_and_counts_once(version: Version) -> None:
    at = timezone.now() + 8 * DAY
    make_request(version, at=at, request_id="early")
    written = call("SELECT written_by::text FROM gateway_request")
    assert make_day(at.astimezone(UTC).date())
    assert dict(rows_by_table())[f"gateway_request_{at:%Y%m%d}"] == 1
    assert call("SELECT written_by::text FROM gateway_request") == written
    assert not make_day(at.astimezone(UTC).date())


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT gateway_records_make_day('registry_version', current_date)",
        "SELECT gateway_records_make_day('gateway_request', current_date + 40)",
        "SELECT gateway_records_drop_before('gateway_request', current_date + 2)",
        "SELECT gateway_records_drop_before('registry_auditrecord', current_date - 10)",
        "DROP TABLE gateway_request_default",
        "DELETE FROM gateway_request",
        "SELECT * FROM gateway_request_default",
    ],
)
def test_the_applications_role_can_do_nothing_else_to_them(
    application: psycopg.Connection[Any], statement: str
) -> None:
    with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue)):
        application.execute(statement.encode())


def test_one_process_tends_them_at_a_time(settings: Any) -> None:
    settings.REQUEST_RECORD_DAYS = 3
    tend()
    make_day(today() - 9 * DAY)
    tend_request_records(actor=ACTOR)
    assert today() - 9 * DAY in days()


@pytest.mark.django_db(transaction=True)
def test_records_of_all_days_are_counted_once_and_mirrored_ones_are_none(version: Version) -> None:
    for ago in (0, 1, 40):
        make_request(version, at=timezone.now() - ago * DAY)
    make_request(version, is_shadow=True)
    assert _counted(3) == 3
    assert count_requests() == 0
    assert VersionHeat.objects.get().hits == 3


def _counted(most: int) -> int:
    """What is counted in all; transactions of others on this server put it off while they are open."""
    counted, deadline = 0, time.monotonic() + 60
    while counted < most and time.monotonic() < deadline:
        counted += count_requests()
        time.sleep(0.05)
    return counted
