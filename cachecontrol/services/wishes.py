"""Wanting a version on a node, and not wanting it any more: the steps that the services have in common.

They run in a transaction of the caller, who has checked the permission and locked version, node and residency in that
order.
"""

from datetime import datetime
from uuid import UUID

from django.utils.translation import gettext as _

from cachecontrol import events
from cachecontrol.errors import VersionNotServable
from cachecontrol.models import Node, Residency
from cachecontrol.selectors import SERVABLE_STATES, residencies_with_relations
from cachecontrol.states import Desired, Observed
from cachecontrol.transitions import begin_residency, move_desired, note, once_more
from registry import dispatch
from registry.actors import Actor, system_actor
from registry.models import Signature, Version
from registry.permissions import can_see_tenant

_A_NEW_TRY = {"attempts": 0, "retry_at": None, "message": "", "error_class": ""}


def is_servable(version: Version) -> bool:
    """Approved or yanked (no new releases, but it goes on serving), signed, and with its files still there."""
    is_decided = version.state in SERVABLE_STATES and version.purged_at is None
    return is_decided and Signature.objects.filter(version=version).exists()


def require_servable(version: Version) -> None:
    if not is_servable(version):
        raise VersionNotServable(
            _("%(version)s is %(state)s; only approved versions are loaded.")
            % {"version": version, "state": version.state},
            field="version",
        )


def want(
    *, actor: Actor, node: Node, version: Version, reason: str = "", demanded_at: datetime | None = None
) -> Residency:
    """Want the version loaded on the node. One generation, however often: quiet while it is loaded or on its way.

    What failed is tried anew.
    """
    residency = lock_residency(node=node, version_id=version.pk)
    was: Desired | None
    if residency is None:
        was = None
        residency = begin_residency(node=node, version=version, demanded_at=demanded_at)
    elif residency.desired == Desired.ABSENT:
        was = Desired.ABSENT
        facts = {"last_demand_at": demanded_at} if demanded_at else {}
        move_desired(residency, was=was, to=Desired.GPU, **facts)
    elif residency.observed == Observed.FAILED:
        was = Desired.GPU
        note(residency, **once_more(residency), **_A_NEW_TRY)
    else:
        return residency
    events.residency_desired(actor=actor, residency=residency, was=was, reason=reason)
    nudge(residency)
    return residency


def release(*, actor: Actor, residency: Residency, reason: str = "") -> None:
    """Want a version to leave a node. Quiet when it isn't wanted there anyway."""
    if residency.desired == Desired.ABSENT:
        return
    move_desired(residency, was=Desired.GPU, to=Desired.ABSENT)
    events.residency_desired(actor=actor, residency=residency, was=Desired.GPU, reason=reason)
    nudge(residency)


def release_victim(*, actor: Actor, node: Node, version_id: UUID) -> None:
    """Let a version leave to make room. Its tenant is told neither the newcomer nor who asked, unless of its own."""
    residency = lock_residency(node=node, version_id=version_id)
    if residency is not None:
        is_member = can_see_tenant(actor, residency.version.adapter.tenant_id)
        release(actor=actor if is_member else system_actor("placement"), residency=residency, reason="to make room")


def lock_residency(*, node: Node, version_id: UUID) -> Residency | None:
    found = residencies_with_relations().select_for_update(of=("self",), no_key=True)
    return found.filter(node=node, version_id=version_id).first()


def nudge(residency: Residency) -> None:
    """Have the reconciler look at the version soon after the commit."""
    dispatch.nudge(dispatch.RECONCILE_VERSION, version_id=str(residency.version_id))
