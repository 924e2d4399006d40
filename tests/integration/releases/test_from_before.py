"""What the migration makes of aliases from before there were intervals, and of adapters from before their defaults."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from client.audit import verify_export
from registry.models import AuditRecord, Version
from registry.services.audit.exports import audit_document
from registry.services.withdrawals import yank_version
from registry.states import VersionState
from releases.models import Alias, AliasInterval, AliasSplit
from releases.services.splits import SplitWish, set_split
from tests.factories.registry import make_actor, make_adapter, make_version
from tests.factories.releases import commit, make_default, point_alias

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
SQL = Path(__file__).resolve().parents[3] / "releases" / "sql"


def run(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute((SQL / name).read_text())


def defaults(*versions: Version) -> list[tuple[str, Version]]:
    run("defaults_from_before.sql")
    commit()
    found = Alias.objects.filter(name__endswith=".default", adapter__in={version.adapter for version in versions})
    return [(alias.name, alias.version) for alias in found.order_by("pk")]


def test_moves_become_intervals_and_the_split_there_is_one_more() -> None:
    adapter = make_adapter()
    versions = [make_version(adapter=adapter) for _number in range(3)]
    for version in versions[:2]:
        alias = point_alias(name="support", version=version)
    set_split(actor=make_actor(), alias=alias, wish=SplitWish(candidate=versions[2], basis_points=500))
    run("intervals_from_before.sql")
    rows = list(AliasInterval.objects.filter(alias=alias).order_by("valid_from"))
    assert [(row.version, row.candidate) for row in rows] == [
        (versions[0], None),
        (versions[1], None),
        (versions[1], versions[2]),
    ]
    assert [row.valid_to for row in rows] == [*(row.valid_from for row in rows[1:]), None]
    assert rows[-1].valid_from == AliasSplit.objects.get().changed_at
    moved = list(alias.revisions.order_by("number").values_list("at", flat=True))
    assert all(abs(row.valid_from - at) < timedelta(milliseconds=1) for row, at in zip(rows[:2], moved, strict=True))
    commit()
    assert AliasInterval.objects.filter(alias=alias).count() == 3


def test_a_clock_that_stepped_back_before_makes_no_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = make_adapter()
    versions = [make_version(adapter=adapter) for _number in range(3)]
    began = timezone.now()
    for number, version in enumerate(versions):
        monkeypatch.setattr("releases.transitions.timezone.now", lambda hours=number: began - timedelta(hours=hours))
        alias = point_alias(name="support", version=version)
    run("intervals_from_before.sql")
    rows = list(AliasInterval.objects.filter(alias=alias).order_by("valid_from"))
    assert [row.revision.number for row in rows] == [1, 2, 3]
    assert [row.valid_to for row in rows] == [*(row.valid_from for row in rows[1:]), None]


def test_an_adapter_gets_the_default_that_main_meant_for_it() -> None:
    first = make_version()
    second = make_version(adapter=first.adapter)
    point_alias(name="default", version=second)
    point_alias(name="support", version=first)
    assert defaults(first) == [(f"{first.adapter.name}.default", second)]


def test_where_all_aliases_agreed_they_still_do() -> None:
    first = make_version()
    second = make_version(adapter=first.adapter)
    for name in ("support", "sales"):
        point_alias(name=name, version=second)
    assert defaults(first) == [(f"{first.adapter.name}.default", second)]


def test_where_main_meant_nothing_it_is_the_version_that_was_approved_first() -> None:
    first = make_version()
    second = make_version(adapter=first.adapter)
    point_alias(name="support", version=first)
    point_alias(name="sales", version=second)
    assert defaults(first) == [(f"{first.adapter.name}.default", first)]


def test_what_was_withdrawn_or_never_approved_becomes_no_default() -> None:
    candidate, yanked = make_version(state=VersionState.CANDIDATE), make_version()
    yank_version(actor=make_actor(), version=yanked, reason="old")
    assert defaults(candidate, yanked) == []


def test_the_default_of_before_has_its_history_and_its_record_in_the_chain() -> None:
    version = make_version()
    tenant = version.adapter.tenant.name
    defaults(version)
    alias = Alias.objects.get(adapter=version.adapter)
    assert alias.revisions.get().kind == "set"
    records = list(AuditRecord.objects.filter(chain=tenant).order_by("seq"))
    assert [record.action for record in records] == ["tenant:alias:set"]
    assert records[0].after
    assert records[0].after["version_id"] == str(version.pk)
    assert verify_export([json.dumps(audit_document(record)) for record in records], chain=tenant).intact


def test_records_of_the_migration_have_the_form_of_the_services() -> None:
    """The migration writes the canonical text by itself: a service's record of the same thing has the same keys."""
    one = make_version()
    defaults(one)
    other = make_version()
    make_default(other)
    tenants = [version.adapter.tenant.name for version in (one, other)]
    texts = [json.loads(AuditRecord.objects.get(chain=tenant).payload) for tenant in tenants]
    assert _shape(texts[0]) == _shape(texts[1])


def _shape(record: dict[str, Any]) -> dict[str, list[str]]:
    return {key: sorted(value) if isinstance(value, dict) else [] for key, value in record.items()}
