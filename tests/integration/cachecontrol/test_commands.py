"""What goes to a node's queue, as its agent checks it."""

from typing import Any

import pytest

from cachecontrol.models import Node
from cachecontrol.services.commands import evict_command, fetch_command, warm_command
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.states import Desired, Outcome
from registry.models import Version
from registry.services.withdrawals import revoke_version
from registry.signing.grants import check_grant
from registry.signing.keys import TrustedKeys
from tests.factories.cachecontrol import make_policy, tell
from tests.factories.registry import make_actor, make_person, make_version
from workers.node.commands import Leaving, parse_evict, parse_fetch, parse_warm
from workers.node.errors import NotTrustedError
from workers.node.verify import Verifier

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent", "queues")]


def test_the_files_of_a_revoked_version_outlast_its_requests_though_nothing_is_drained(
    node: Node, version: Version, settings: Any, signer: Any
) -> None:
    settings.EVICT_GRACE_S, settings.DRAIN_S = 300, 5.5
    residency = warm_version(actor=make_actor(), node=node, version=version)
    assert evict_command(residency)["grace_s"] == 300
    revoke_version(actor=make_actor(), version=version, reason="leak")
    residency.refresh_from_db()
    assert evict_command(residency)["grace_s"] == 306


def test_a_node_takes_the_commands_for_itself_and_no_other_does(node: Node, version: Version, signer: Any) -> None:
    residency = warm_version(actor=make_actor(), node=node, version=version)
    warm, evict = parse_warm(warm_command(residency)), parse_evict(evict_command(residency))
    keys = TrustedKeys.from_pem(signer.public_pem())
    itself, other = Verifier(keys, node=node.name), Verifier(keys, node="n2")
    itself.eviction(evict)
    with pytest.raises(NotTrustedError, match="grant_for_other_node"):
        other.eviction(evict)
    with pytest.raises(NotTrustedError, match="grant_for_other_node"):
        other.grant(warm)


def test_a_fetch_is_a_warm_command_without_its_probe_and_may_not_be_used_as_one(
    node: Node, version: Version, signer: Any
) -> None:
    residency = warm_version(actor=make_actor(), node=node, version=version)
    fetch = parse_fetch(fetch_command(residency))
    warm = parse_warm(warm_command(residency))
    assert (fetch.engine_name, fetch.generation, len(fetch.files)) == (version.engine_name, 1, len(warm.files))
    keys = TrustedKeys.from_pem(signer.public_pem())
    for command, action in ((fetch, "fetch"), (warm, "load")):
        grant = check_grant(command.grant, keys, node="n1")
        assert (grant.action, grant.command) == (action, command.digest)


def test_what_the_policy_pins_is_loaded_with_a_pin_where_the_engine_has_pins(node: Node, version: Version) -> None:
    residency = warm_version(actor=make_actor(), node=node, version=version)
    tenant, adapter = version.adapter.tenant.name, version.adapter.name
    pin = f"pins: [{{tenant: {tenant}, adapter: {adapter}, version: {version.name}}}]\n"
    admin = make_actor(make_person(is_platform_admin=True))
    residency.node.engine_kind = "sglang"
    assert not parse_warm(warm_command(residency)).pinned
    make_policy(base_model=version.base_revision.base_model, more=pin, approver=admin)
    assert parse_warm(warm_command(residency)).pinned
    residency.node.engine_kind = "vllm"
    assert not parse_warm(warm_command(residency)).pinned


def test_a_load_names_who_leaves_the_engine_where_the_node_sees_what_is_in_use(node: Node, version: Version) -> None:
    old = make_version(adapter=version.adapter)
    residency = warm_version(actor=make_actor(), node=node, version=version)
    leaving = warm_version(actor=make_actor(), node=node, version=old)
    tell(node, old, Outcome.LOADED)
    assert parse_warm(warm_command(residency)).leaving == ()
    evict_version(actor=make_actor(), node=node, version=old, to=Desired.DISK)
    leaving.refresh_from_db()
    assert parse_warm(warm_command(residency)).leaving == (Leaving(old.engine_name, leaving.generation),)
    residency.node.engine_kind = "lorax"
    assert parse_warm(warm_command(residency)).leaving == ()


def test_an_eviction_says_where_to_and_how_long_the_node_may_wait_for_requests(
    node: Node, version: Version, settings: Any
) -> None:
    settings.DRAIN_S = 7
    residency = warm_version(actor=make_actor(), node=node, version=version)
    for to in (Desired.DISK, Desired.ABSENT):
        evict_version(actor=make_actor(), node=node, version=version, to=to)
        residency.refresh_from_db()
        command = parse_evict(evict_command(residency))
        assert (command.to, command.drain_s) == (to.value, 7)
    residency.node.engine_kind = "sglang"
    assert parse_evict(evict_command(residency)).drain_s == 0
