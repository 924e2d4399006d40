"""What goes to a node's queue, as its agent checks it."""

from typing import Any

import pytest

from cachecontrol.models import Node
from cachecontrol.services.commands import evict_command, warm_command
from cachecontrol.services.residencies import warm_version
from registry.models import Version
from registry.services.withdrawals import revoke_version
from registry.signing.keys import TrustedKeys
from tests.factories.registry import make_actor
from workers.node.commands import parse_evict, parse_warm
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
