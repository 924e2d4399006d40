"""Aliases, their intervals, protection and grants with the rights of the application's role alone."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection, connections

from deploy.embedded.postgres import APP, PostgresServer
from registry.models import Version
from releases.models import Alias, AliasInterval
from releases.services.aliases import roll_back_alias
from releases.services.protection import protect_alias, unprotect_alias
from releases.services.sharing import end_grant, grant_alias
from releases.services.splits import SplitWish, clear_split, set_split
from tests.factories.registry import make_actor, make_adapter, make_tenant, make_version
from tests.factories.releases import make_default, point_alias

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent")]


@pytest.fixture
def versions(db: None) -> list[Version]:
    adapter = make_adapter()
    return [make_version(adapter=adapter) for _number in range(3)]


@pytest.fixture
def as_application(postgres: PostgresServer, versions: list[Version]) -> Iterator[None]:
    """Django's connection belongs to the application's role while the test runs."""
    owner = {name: connection.settings_dict[name] for name in ("USER", "PASSWORD")}
    connection.close()
    connection.settings_dict.update(USER=APP, PASSWORD=postgres.passwords.of(APP))
    yield
    connection.close()
    connection.settings_dict.update(owner)


@pytest.mark.usefixtures("as_application")
def test_the_application_moves_splits_protects_and_shares_aliases(versions: list[Version]) -> None:
    actor, guest = make_actor(), make_tenant()
    make_default(versions[0])
    for version in versions[:2]:
        alias = point_alias(name="support", version=version)
    set_split(actor=actor, alias=alias, wish=SplitWish(candidate=versions[2], basis_points=500))
    clear_split(actor=actor, alias=alias)
    grant_alias(actor=actor, alias=alias, tenant=guest, name="assistant")
    protect_alias(actor=actor, alias=alias)
    protect_alias(actor=actor, alias=alias, needs_release=False)
    unprotect_alias(actor=actor, alias=alias)
    roll_back_alias(actor=actor, alias=alias)
    end_grant(actor=actor, alias=alias, tenant=guest)
    told = AliasInterval.objects.filter(alias=alias).order_by("valid_from").values_list("version", "candidate")
    one, two, three = (version.pk for version in versions)
    assert list(told) == [(one, None), (two, None), (two, three), (two, None), (one, None)]
    assert Alias.objects.get(pk=alias.pk).version_id == one


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO releases_aliasinterval SELECT * FROM releases_aliasinterval",
        "UPDATE releases_aliasinterval SET valid_to = now()",
        "DELETE FROM releases_aliasinterval",
        "UPDATE releases_aliasgrant SET name = 'x'",
    ],
)
def test_the_application_writes_no_history_and_changes_no_grant(
    versions: list[Version], postgres: PostgresServer, statement: str
) -> None:
    point_alias(name="support", version=versions[0])
    url: Any = postgres.url(APP, database=str(connections["default"].settings_dict["NAME"]))
    with psycopg.connect(url, autocommit=True) as opened, pytest.raises(psycopg.errors.InsufficientPrivilege):
        opened.execute(statement.encode())
