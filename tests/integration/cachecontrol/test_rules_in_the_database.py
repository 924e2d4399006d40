"""The rules of cachecontrol/sql hold against whoever writes SQL, whatever the code above does."""

import pytest
from django.db import DatabaseError, connection, transaction

from cachecontrol.models import Node
from cachecontrol.services.residencies import evict_version, warm_version
from registry.models import Adapter, Version
from registry.services.withdrawals import revoke_version
from registry.states import VersionState
from tests.factories.cachecontrol import make_node
from tests.factories.registry import make_actor, make_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]

INSERT = (
    "INSERT INTO cachecontrol_residency (node_id, version_id, desired, observed, generation, acted_generation,"
    " attempts, message, error_class, state_changed_at, created_at, is_hot, tier, tier_is_estimate, fetched_bytes,"
    " score_clock)"
    " VALUES (%s, %s, 'gpu', 'absent', 1, 0, 0, '', '', now(), now(), false, '', false, 0, 0)"
)


def refused(sql: str, *params: str | int) -> str:
    """Run ``sql`` in a savepoint; it has to fail. Returns the database's words."""
    with pytest.raises(DatabaseError) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, params)
    return str(caught.value)


@pytest.mark.parametrize(
    "state", [state for state in VersionState if state not in (VersionState.APPROVED, VersionState.YANKED)]
)
def test_only_an_approved_version_is_wanted_on_a_node(node: Node, adapter: Adapter, state: VersionState) -> None:
    version = make_version(adapter=adapter, state=state)
    assert f"is {state.value} is not loaded" in refused(INSERT, node.pk, str(version.pk))


def test_only_an_approved_version_is_wanted_on_a_disk_and_only_where_it_fits(node: Node, adapter: Adapter) -> None:
    on_disk = INSERT.replace("'gpu'", "'disk'")
    rejected = make_version(adapter=adapter, state=VersionState.REJECTED)
    assert "is rejected is not loaded" in refused(on_disk, node.pk, str(rejected.pk))
    assert "another base" in refused(on_disk, make_node().pk, str(make_version(adapter=adapter).pk))


def test_what_is_revoked_may_be_demoted_and_not_wanted_on_disk_again(node: Node, version: Version) -> None:
    residency = warm_version(actor=make_actor(), node=node, version=version)
    revoke_version(actor=make_actor(), version=version, reason="poisoned")
    with connection.cursor() as cursor:
        for lower in ("disk", "absent"):
            sql = "UPDATE cachecontrol_residency SET desired = %s, is_hot = false WHERE id = %s"
            cursor.execute(sql, [lower, residency.pk])
    assert "revoked" in refused("UPDATE cachecontrol_residency SET desired = 'disk' WHERE id = %s", residency.pk)


def test_a_revoked_version_is_never_wanted_again(node: Node, version: Version) -> None:
    residency = warm_version(actor=make_actor(), node=node, version=version)
    evict_version(actor=make_actor(), node=node, version=version)
    revoke_version(actor=make_actor(), version=version, reason="poisoned")
    assert "revoked" in refused("UPDATE cachecontrol_residency SET desired = 'gpu' WHERE id = %s", residency.pk)


def test_a_version_is_wanted_only_where_it_fits(version: Version) -> None:
    assert "another base" in refused(INSERT, make_node().pk, str(version.pk))
    narrow = make_node(base_revision=version.base_revision, max_rank=4)
    assert "too few ranks" in refused(INSERT, narrow.pk, str(version.pk))


@pytest.mark.parametrize(
    "change",
    [
        "generation = 0",
        "acted_generation = -1",
        "acted_generation = 7",
        "observed = 'floating'",
        "desired = 'cpu'",
        "tier = 'remote'",
        "desired = 'disk', is_hot = true",
        "error_class = 'bad luck'",
        "node_id = node_id + 1",
        "version_id = gen_random_uuid()",
    ],
)
def test_a_residency_makes_sense(node: Node, version: Version, change: str) -> None:
    residency = warm_version(actor=make_actor(), node=node, version=version)
    refused(f"UPDATE cachecontrol_residency SET {change} WHERE id = %s", residency.pk)


def test_a_version_is_on_a_node_once(node: Node, version: Version) -> None:
    warm_version(actor=make_actor(), node=node, version=version)
    assert "residency_once_per_node" in refused(INSERT, node.pk, str(version.pk))


@pytest.mark.parametrize("change", ["cpu_slots = 1", "gpu_slots = 0", "status = 'asleep'", "disk_bytes = 0"])
def test_a_node_makes_sense(node: Node, change: str) -> None:
    refused(f"UPDATE cachecontrol_node SET {change} WHERE id = %s", node.pk)


@pytest.mark.parametrize(
    ("table", "allowed"),
    [
        ("routing_nodes", {"SELECT"}),
        ("routing_residencies", {"SELECT"}),
        ("routing_aliases", {"SELECT"}),
        ("routing_versions", {"SELECT"}),
        ("routing_tokens", {"SELECT"}),
        ("gateway_request", {"INSERT"}),
        ("gateway_shadow", {"INSERT"}),
        ("gateway_feedback", {"INSERT"}),
        ("gateway_request_default", set()),
        ("cachecontrol_node", set()),
        ("cachecontrol_residency", set()),
    ],
)
def test_a_gateway_may_read_the_views_insert_requests_and_nothing_else(table: str, allowed: set[str]) -> None:
    with connection.cursor() as cursor:
        for privilege in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"):
            cursor.execute("SELECT has_table_privilege('lorekeeper_gateway', %s, %s)", [table, privilege])
            assert cursor.fetchone() == (privilege in allowed,), privilege


def test_the_application_reads_requests_and_never_writes_them() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT has_table_privilege('lorekeeper_app', 'gateway_request', 'SELECT'),"
            " has_table_privilege('lorekeeper_app', 'gateway_request', 'INSERT, UPDATE, DELETE')"
        )
        assert cursor.fetchone() == (True, False)
