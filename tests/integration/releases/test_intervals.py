"""What an alias stood for when: intervals that the database writes at commit, and the reads of them."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from registry.actors import system_actor
from registry.models import Version
from registry.services.tokens import create_tenant_token
from registry.services.withdrawals import revoke_version
from registry.states import Role, Scope, TokenKind
from releases.models import Alias, AliasInterval
from releases.served import list_alias_times
from releases.services.aliases import roll_back_alias
from releases.services.releases.rollback import roll_back_release
from releases.services.releases.verbs import promote_release
from releases.services.splits import SplitWish, clear_split, set_split
from releases.states import ReleaseState
from tests.factories.registry import make_actor, make_adapter, make_person, make_version
from tests.factories.releases import begin_release, commit, point_alias, run_release

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture
def versions() -> list[Version]:
    adapter = make_adapter()
    return [make_version(adapter=adapter) for _number in range(3)]


@pytest.fixture
def alias(versions: list[Version]) -> Alias:
    made = point_alias(name="support", version=versions[0])
    commit()
    return made


def intervals(alias: Alias) -> list[AliasInterval]:
    found = list(AliasInterval.objects.filter(alias=alias).order_by("valid_from"))
    assert [row.valid_to for row in found] == [*(row.valid_from for row in found[1:]), None]
    return found


def split(alias: Alias, candidate: Version, share: int) -> None:
    set_split(actor=make_actor(), alias=alias, wish=SplitWish(candidate=candidate, basis_points=share))


def test_each_commit_that_changes_target_or_split_ends_one_interval_and_begins_another(
    alias: Alias, versions: list[Version]
) -> None:
    split(alias, versions[1], 500)
    commit()
    split(alias, versions[1], 2500)
    commit()
    point_alias(name="support", version=versions[1])
    commit()
    roll_back_alias(actor=make_actor(), alias=alias)
    commit()
    told = [(row.revision.number, row.version, row.candidate, row.basis_points) for row in intervals(alias)]
    assert told == [
        (1, versions[0], None, 0),
        (1, versions[0], versions[1], 500),
        (1, versions[0], versions[1], 2500),
        (2, versions[1], None, 0),
        (3, versions[0], None, 0),
    ]


def test_what_a_commit_leaves_as_it_was_begins_no_interval(alias: Alias, versions: list[Version]) -> None:
    split(alias, versions[1], 500)
    clear_split(actor=make_actor(), alias=alias)
    commit()
    assert len(intervals(alias)) == 1


def test_several_changes_of_one_commit_are_one_interval(alias: Alias, versions: list[Version]) -> None:
    split(alias, versions[1], 500)
    point_alias(name="support", version=versions[1])
    point_alias(name="support", version=versions[2])
    commit()
    assert [row.version for row in intervals(alias)] == [versions[0], versions[2]]


def test_an_interval_says_everything_of_its_split(alias: Alias, versions: list[Version]) -> None:
    wish = SplitWish(
        candidate=versions[1],
        basis_points=500,
        allow=("acme",),
        deny=("zed",),
        shadow=versions[2],
        shadow_basis_points=100,
        salt="s",
    )
    set_split(actor=make_actor(), alias=alias, wish=wish)
    commit()
    row = intervals(alias)[-1]
    assert (row.candidate, row.basis_points, row.salt, row.allow, row.deny) == (
        versions[1],
        500,
        "s",
        ["acme"],
        ["zed"],
    )
    assert (row.shadow, row.shadow_basis_points, row.release) == (versions[2], 100, None)


def test_a_clock_that_steps_back_makes_short_intervals_and_no_gap(alias: Alias, versions: list[Version]) -> None:
    ahead = timezone.now() + timedelta(hours=1)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE releases_aliasinterval DISABLE TRIGGER alias_interval_guard")
        cursor.execute("UPDATE releases_aliasinterval SET valid_from = %s", [ahead])
        commit()
        cursor.execute("ALTER TABLE releases_aliasinterval ENABLE TRIGGER alias_interval_guard")
    for version in (versions[1], versions[2]):
        point_alias(name="support", version=version)
        commit()
    lasted = [row.valid_from for row in intervals(alias)]
    assert lasted == [ahead, ahead + timedelta(microseconds=1), ahead + timedelta(microseconds=2)]


def test_an_interval_knows_the_release_that_split_or_moved_the_alias(alias: Alias) -> None:
    release = run_release(begin_release(alias=alias), until=2)
    commit()
    promote_release(actor=make_actor(), release=release)
    commit()
    before, during, after = intervals(alias)
    assert (before.release, during.release, after.release) == (None, release, release)
    assert (during.candidate, during.basis_points, after.version) == (release.candidate, 1000, release.candidate)


def test_after_a_release_that_was_rolled_back_the_alias_belongs_to_none(alias: Alias) -> None:
    release = run_release(begin_release(alias=alias), until=2)
    commit()
    assert roll_back_release(actor=make_actor(), release=release).state == ReleaseState.ROLLED_BACK
    commit()
    last = intervals(alias)[-1]
    assert (last.candidate, last.release, last.version, last.revision.kind) == (None, None, alias.version, "rollback")


A_LATER_ONE = """
    INSERT INTO releases_aliasinterval (
        alias_id, revision_id, version_id, valid_from, basis_points, salt, allow, deny, shadow_basis_points)
    SELECT alias_id, revision_id, version_id, valid_from + interval '1 hour', 0, '', '{}', '{}', 0
    FROM releases_aliasinterval
"""


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM releases_aliasinterval",
        "UPDATE releases_aliasinterval SET version_id = gen_random_uuid()",
        "UPDATE releases_aliasinterval SET valid_from = valid_from - interval '1 hour'",
        "UPDATE releases_aliasinterval SET valid_from = valid_from, valid_to = NULL",
        A_LATER_ONE,
    ],
)
def test_intervals_are_append_only_and_contiguous_whoever_writes(alias: Alias, statement: str) -> None:
    with (
        pytest.raises(DatabaseError, match="an interval of an alias"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


def at(alias: Alias, when: datetime) -> list[AliasInterval]:
    rows = list_alias_times(actor=make_actor(), tenant=alias.tenant.name, name=alias.name, at=when)
    return [interval for row in rows for interval in row.intervals.all() if interval.revision_id == row.pk]


def test_what_served_at_a_time_is_what_stood_then(alias: Alias, versions: list[Version]) -> None:
    split(alias, versions[1], 500)
    commit()
    point_alias(name="support", version=versions[1])
    commit()
    first, second, third = intervals(alias)
    assert at(alias, first.valid_from) == [first]
    assert at(alias, second.valid_from - timedelta(microseconds=1)) == [first]
    assert at(alias, second.valid_from) == [second]
    assert at(alias, timezone.now()) == [third]
    assert at(alias, first.valid_from - timedelta(microseconds=1)) == []


def test_what_served_at_a_time_takes_one_query_beyond_who_asks(alias: Alias) -> None:
    rows = list_alias_times(actor=make_actor(), tenant=alias.tenant.name, name=alias.name, at=timezone.now())
    with CaptureQueriesContext(
        connection,
    ) as asked:
        (row,) = rows
        assert [interval.candidate for interval in row.intervals.all()] == [None]
    assert len(asked) == 2  # the revision, and its interval


def viewer(alias: Alias) -> APIClient:
    person = make_person(roles={alias.tenant: [Role.VIEWER]})
    token = create_tenant_token(
        actor=system_actor("test"),
        tenant=alias.tenant,
        name="test",
        kind=TokenKind.PERSON,
        scopes=[Scope.READ],
        person_email=person.email,
    )
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token.text}")
    return client


def test_the_history_of_a_time_is_one_row_with_one_interval(alias: Alias, versions: list[Version]) -> None:
    split(alias, versions[1], 500)
    commit()
    point_alias(name="support", version=versions[2])
    commit()
    url, client = f"/api/v1/tenants/{alias.tenant.name}/aliases/support/history", viewer(alias)
    whole: Any = client.get(url).json()["results"]
    assert [(row["revision"], len(row["intervals"])) for row in whole] == [(2, 1), (1, 2)]
    (then,) = client.get(url, {"at": whole[1]["intervals"][0]["valid_from"]}).json()["results"]
    assert (then["version"], len(then["intervals"])) == (versions[0].name, 1)
    assert then["intervals"][0]["split"]["version"] == versions[1].name
    assert then["intervals"][0]["split"]["basis_points"] == 500
    assert client.get(url, {"at": "2001-01-01T00:00:00Z"}).json()["results"] == []
    assert client.get(url, {"at": "yesterday"}).status_code == 400


def test_the_history_says_since_when_a_version_answered_nothing(alias: Alias, versions: list[Version]) -> None:
    point_alias(name="support", version=versions[1])
    revoke_version(actor=make_actor(), version=versions[1], reason="poisoned")
    commit()
    rows: Any = viewer(alias).get(f"/api/v1/tenants/{alias.tenant.name}/aliases/support/history").json()["results"]
    assert [row["revoked_at"] is None for row in rows] == [False, True]
