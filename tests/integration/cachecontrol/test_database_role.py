"""Web and workers run as a role that owns nothing: everything they do has to work with its grants alone."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from cachecontrol.models import Node, Residency
from cachecontrol.services.demand import demand_version
from cachecontrol.services.nodes import rotate_node_token
from cachecontrol.services.reconcile import sweep_residencies
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.states import Outcome
from deploy.embedded.postgres import APP
from registry.models import Version
from registry.services.withdrawals import revoke_version
from releases.services.aliases import roll_back_alias
from tests.factories.cachecontrol import backdate, gateway_actor, make_node, report, tell
from tests.factories.registry import make_actor, make_adapter, make_version
from tests.factories.releases import point_alias

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent")]


@pytest.fixture
def as_application(postgres: Any, db: None) -> Iterator[None]:
    """Django's connection belongs to the application's role while the test runs."""
    owner = {name: connection.settings_dict[name] for name in ("USER", "PASSWORD")}
    connection.close()
    connection.settings_dict.update(USER=APP, PASSWORD=postgres.passwords.of(APP))
    yield
    connection.close()
    connection.settings_dict.update(owner)


def test_the_applications_role_may_do_all_that_releases_and_cache_control_do(
    as_application: None, queues: Any, settings: Any
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == (APP,)
    adapter = make_adapter()
    first, second = make_version(adapter=adapter), make_version(adapter=adapter)
    node = make_node(base_revision=first.base_revision, gpu_slots=1, cpu_slots=1)
    rotate_node_token(actor=make_actor(), node=node)
    node.refresh_from_db()
    move_back_and_forth(first, second)
    run_a_life(node, first, settings.DRAIN_S)
    Node.objects.filter(pk=node.pk).update(last_seen_at=timezone.now() - timedelta(hours=1))
    sweep_residencies()
    node.refresh_from_db()
    assert node.status == "lost"
    assert queues.tasks == ["node.warm", "node.evict"]


def move_back_and_forth(first: Version, second: Version) -> None:
    point_alias(name="support", version=first)
    alias = point_alias(name="support", version=second)
    assert roll_back_alias(actor=make_actor(), alias=alias).version == first


def run_a_life(node: Node, version: Version, drain_s: float) -> None:
    """Demanded, loaded, evicted, revoked and forgotten."""
    report(node)
    demand_version(actor=gateway_actor(), version_id=version.pk)
    warm_version(actor=make_actor(), node=node, version=version)
    sweep_residencies()
    tell(node, version, Outcome.LOADED)
    evict_version(actor=make_actor(), node=node, version=version)
    sweep_residencies()
    backdate(Residency.objects.get(), drain_s + 1, "drain_until")
    sweep_residencies()
    tell(node, version, Outcome.EVICTED)
    revoke_version(actor=make_actor(), version=version, reason="poisoned")
    sweep_residencies()
    assert not Residency.objects.exists()
