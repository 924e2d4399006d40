"""Real connections at once: names of aliases and grants, defaults, and the intervals of the history."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.utils import timezone

from registry.errors import NameTaken
from registry.models import Tenant, Version
from registry.services.approvals import approve_version
from registry.states import Role, VersionState
from releases.errors import ReleaseNeeded, TargetNotServable
from releases.models import Alias, AliasGrant, AliasInterval
from releases.services.aliases import roll_back_alias, set_alias
from releases.services.protection import protect_alias, unprotect_alias
from releases.services.sharing import end_grant, grant_alias
from releases.services.splits import SplitWish, clear_split, set_split
from tests.concurrency.racing import errors_in, race
from tests.factories.registry import make_actor, make_adapter, make_member, make_person, make_tenant, make_version
from tests.factories.releases import point_alias

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent", "signer")]


def setter(version: Version, name: str) -> Callable[[], Any]:
    tenant = version.adapter.tenant
    return lambda: set_alias(actor=make_actor(), tenant=tenant, name=name, adapter=version.adapter, version=version)


def granter(alias: Alias, tenant: Tenant, name: str) -> Callable[[], Any]:
    return lambda: grant_alias(actor=make_actor(), alias=alias, tenant=tenant, name=name)


@pytest.mark.parametrize("attempt", range(6))
def test_of_a_grant_and_an_own_alias_of_one_name_one_is_refused(attempt: int) -> None:
    alias = point_alias(name="support", version=make_version())
    own = make_version()
    acts = [setter(own, "support"), granter(alias, own.adapter.tenant, "support")]
    results = race(*acts) if attempt % 2 else race(*reversed(acts))
    assert [type(error) for error in errors_in(results)] == [NameTaken]
    tenant = own.adapter.tenant
    assert Alias.objects.filter(tenant=tenant).count() + AliasGrant.objects.filter(tenant=tenant).count() == 1


@pytest.mark.parametrize("attempt", range(6))
def test_the_database_keeps_one_name_for_one_thing_even_past_the_services(attempt: int) -> None:
    alias, own = point_alias(name="support", version=make_version()), make_version()
    tenant = own.adapter.tenant

    def insert_alias() -> None:
        Alias.objects.create(
            tenant=tenant, name="x", adapter=own.adapter, version=own, revision=1, updated_at=timezone.now()
        )

    def insert_grant() -> None:
        AliasGrant.objects.create(alias=alias, tenant=tenant, name="x", granted_at=timezone.now())

    with connection.cursor() as cursor:
        # What these two rows lack besides is not what is asked here.
        cursor.execute(
            "ALTER TABLE releases_alias DISABLE TRIGGER alias_has_history, DISABLE TRIGGER alias_interval_of_alias"
        )
    try:
        assert [type(error) for error in errors_in(race(insert_alias, insert_grant))] == [IntegrityError]
    finally:
        with connection.cursor() as cursor:
            cursor.execute(
                "ALTER TABLE releases_alias ENABLE TRIGGER alias_has_history, ENABLE TRIGGER alias_interval_of_alias"
            )


@pytest.mark.parametrize("attempt", range(4))
def test_two_first_approvals_make_one_default(attempt: int) -> None:
    adapter = make_adapter()
    versions = [make_version(adapter=adapter, state=VersionState.CANDIDATE) for _number in range(2)]
    reviewers = [make_member(adapter.tenant, Role.REVIEWER) for _version in versions]

    def approver(number: int) -> Callable[[], Any]:
        version = versions[number]
        return lambda: approve_version(actor=reviewers[number], version=version, digest=version.root_digest)

    assert errors_in(race(approver(0), approver(1))) == []
    alias = Alias.objects.get(tenant=adapter.tenant)
    assert (alias.name, alias.revision, alias.version in versions) == (f"{adapter.name}.default", 1, True)


@pytest.mark.parametrize("attempt", range(4))
def test_the_intervals_of_changes_at_once_have_neither_gap_nor_overlap(attempt: int) -> None:
    adapter = make_adapter()
    versions = [make_version(adapter=adapter) for _number in range(4)]
    for version in versions[:2]:
        alias = point_alias(name="support", version=version)
    guest = make_tenant()
    admin = make_actor(make_person(is_platform_admin=True))

    def split(version: Version) -> Callable[[], Any]:
        wish = SplitWish(candidate=version, basis_points=100)
        return lambda: set_split(actor=make_actor(), alias=alias, wish=wish)

    results = race(
        *(setter(version, "support") for version in versions),
        *(split(version) for version in versions[2:]),
        lambda: clear_split(actor=make_actor(), alias=alias),
        lambda: roll_back_alias(actor=make_actor(), alias=alias),
        lambda: grant_alias(actor=admin, alias=alias, tenant=guest),
        lambda: end_grant(actor=admin, alias=alias, tenant=guest),
        lambda: protect_alias(actor=admin, alias=alias),
        lambda: unprotect_alias(actor=admin, alias=alias),
    )
    # While it is protected, nothing but a way back moves it; and what it stands for is nothing to split it with.
    assert {type(error) for error in errors_in(results)} <= {ReleaseNeeded, TargetNotServable}
    assert errors_in(results[-5:]) == []
    rows = list(AliasInterval.objects.filter(alias=alias).order_by("valid_from"))
    assert len(rows) > 2
    assert [row.valid_to for row in rows] == [*(row.valid_from for row in rows[1:]), None]
    alias = Alias.objects.get(pk=alias.pk)
    stands = dict(alias.revisions.values_list("number", "version_id"))
    assert {row.revision.number for row in rows} == set(stands)
    assert all(row.version_id == stands[row.revision.number] for row in rows)
    assert rows[-1].version_id == alias.version_id
    assert rows[-1].candidate_id == (alias.split.candidate_id if hasattr(alias, "split") else None)
