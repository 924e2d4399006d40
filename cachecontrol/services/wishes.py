"""Wanting a version on a node, and not wanting it any more: the steps that the services have in common.

They run in a transaction of the caller, who has checked the permission and locked version, node and residency in that
order.
"""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.utils.translation import gettext as _

from cachecontrol import events
from cachecontrol.errors import VersionNotServable
from cachecontrol.models import Node, Residency
from cachecontrol.selectors import SERVABLE_STATES
from cachecontrol.states import Desired, Observed
from cachecontrol.transitions import begin_residency, move_desired, note, once_more
from registry import dispatch
from registry.actors import Actor
from registry.models import Version

_A_NEW_TRY = {"attempts": 0, "retry_at": None, "message": "", "error_class": "", "error_code": ""}


def is_servable(version: Version) -> bool:
    """Approved or yanked (no new releases, but it goes on serving), signed, and with its files still there."""
    is_decided = version.state in SERVABLE_STATES and version.purged_at is None
    return is_decided and hasattr(version, "signature")


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
    residency = _lock_own(node, version)
    was: Desired | None
    if residency is None:
        was = None
        residency = begin_residency(node=node, version=version, desired=Desired.GPU, demanded_at=demanded_at)
    elif residency.desired != Desired.GPU:
        was = Desired(residency.desired)
        facts = {"last_demand_at": demanded_at} if demanded_at else {}
        move_desired(residency, was=was, to=Desired.GPU, **facts)
    elif residency.observed == Observed.FAILED:
        was = Desired.GPU
        note(residency, **once_more(residency), **_A_NEW_TRY)
    else:
        return residency
    return _wished(actor, residency, was, reason)


def want_on_disk(*, actor: Actor, node: Node, version: Version, reason: str = "") -> Residency:
    """Want the version's files on the node. Quiet when they are wanted already, be it in the engine.

    What failed to come to the disk is tried anew.
    """
    residency = _lock_own(node, version)
    was: Desired | None
    if residency is None:
        was = None
        residency = begin_residency(node=node, version=version, desired=Desired.DISK)
    elif residency.desired == Desired.ABSENT:
        was = Desired.ABSENT
        move_desired(residency, was=was, to=Desired.DISK)
    elif residency.desired == Desired.DISK and residency.observed == Observed.FAILED:
        was = Desired.DISK
        note(residency, **once_more(residency), **_A_NEW_TRY)
    else:
        return residency
    return _wished(actor, residency, was, reason)


def demote(*, actor: Actor, residency: Residency, reason: str = "") -> None:
    """Want a version out of the engine and its files kept. Quiet when it isn't wanted in the engine anyway."""
    if residency.desired == Desired.GPU:
        move_desired(residency, was=Desired.GPU, to=Desired.DISK)
        _wished(actor, residency, Desired.GPU, reason)


def release(*, actor: Actor, residency: Residency, reason: str = "") -> None:
    """Want a version to leave a node, its files too. Quiet when it isn't wanted there anyway."""
    was = Desired(residency.desired)
    if was is not Desired.ABSENT:
        move_desired(residency, was=was, to=Desired.ABSENT)
        _wished(actor, residency, was, reason)


def _wished(actor: Actor, residency: Residency, was: Desired | None, reason: str) -> Residency:
    events.residency_desired(actor=actor, residency=residency, was=was, reason=reason)
    nudge(residency)
    return residency


def lock_residency(*, node: Node, version_id: UUID) -> Residency | None:
    found = Residency.objects.select_related("version__adapter__tenant", "version__base_revision__base_model")
    locked = found.defer("version__base_revision__description").select_for_update(of=("self",), no_key=True)
    residency = locked.filter(node=node, version_id=version_id).first()
    if residency is not None:
        residency.node = node
    return residency


def lock_residencies(*, node: Node, version_ids: Collection[UUID]) -> None:
    """Lock what there is of several at once, in their order."""
    found = Residency.objects.select_for_update(no_key=True).filter(node=node, version__in=version_ids)
    list(found.order_by("pk").values_list("pk"))


def _lock_own(node: Node, version: Version) -> Residency | None:
    """The same for who has read node and version already: every load begins with it."""
    residency = Residency.objects.select_for_update(no_key=True).filter(node=node, version=version).first()
    if residency is not None:
        residency.node, residency.version = node, version
    return residency


def nudge(residency: Residency) -> None:
    """Have the reconciler look at the version soon after the commit."""
    dispatch.nudge(dispatch.RECONCILE_VERSION, version_id=str(residency.version_id))
