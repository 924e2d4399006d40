"""Warming a version on a node and evicting it, as an operator asks for it."""

from django.db import transaction
from django.utils.translation import gettext as _

from cachecontrol.errors import NoCapacity, NodeRefused
from cachecontrol.models import Node, Residency
from cachecontrol.selectors import lock_node
from cachecontrol.services import wishes
from cachecontrol.services.evictions import REMOTE, record_eviction
from cachecontrol.services.loads import queue
from cachecontrol.services.loads.placing import Ending, fits_on, look_at_node
from cachecontrol.services.places import Spot, lock_pool, spots_for, wanted_of
from cachecontrol.states import Desired, EvictionReason, Tier
from registry.actors import Actor
from registry.errors import NotFound
from registry.models import Version
from registry.permissions import Action, require_in_tenant
from registry.selectors import versions_with_relations

_TRIES = 4


def warm_version(*, actor: Actor, node: Node, version: Version) -> Residency:
    """Want the version loaded on this very node. Quiet while it is loaded or on its way; what failed is tried anew.

    When the node is full, the version worth least there leaves its engine first.

    Raises:
        VersionNotServable: it is not approved, or revoked.
        NodeRefused: the node has another base revision, or too few ranks; or nothing new is placed there now.
        NoCapacity: every place is taken by versions that may not leave now, or the tenant's quota is used up,
            that of its loads in a minute included.

    """
    require_in_tenant(actor, Action.OPERATE_VERSION, version.adapter.tenant_id)
    for _attempt in range(_TRIES):
        residency = _warm(actor, node, version)
        if residency is not None:
            return residency
    raise NoCapacity(_("Others take the places on %(node)s. Try again.") % {"node": node})


@transaction.atomic
def evict_version(
    *, actor: Actor, node: Node, version: Version, reason: str = "", to: Desired = Desired.ABSENT
) -> Residency:
    """Want the version to leave this node, or its engine alone (``to`` the disk), in the safe order.

    Quiet when no more than that is wanted there anyway.

    Raises:
        NotFound: the version has never been on this node.

    """
    require_in_tenant(actor, Action.OPERATE_VERSION, version.adapter.tenant_id)
    residency = wishes.lock_residency(node=node, version_id=version.pk)
    if residency is None:
        raise NotFound(
            _("%(version)s is not on the node %(node)s.") % {"version": version, "node": node}, field="version"
        )
    if to is Desired.DISK and residency.desired == Desired.GPU:
        record_eviction(residency=residency, to=Tier.DISK, reason=EvictionReason.MANUAL)
        wishes.demote(actor=actor, residency=residency, reason=reason)
    elif to is Desired.ABSENT and residency.desired != Desired.ABSENT:
        record_eviction(residency=residency, to=REMOTE, reason=EvictionReason.MANUAL)
        wishes.release(actor=actor, residency=residency, reason=reason)
    return residency


@transaction.atomic
def _warm(actor: Actor, node: Node, version: Version) -> Residency | None:
    """The residency, or None when a place was made: look again."""
    locked = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version.pk)
    wishes.require_servable(locked)
    lock_pool(locked.base_revision.digest)
    spot = next((spot for spot in spots_for(locked) if spot.node.pk == node.pk), None)
    if spot is None or not fits_on(spot, wanted_of(locked)):
        raise _misfit(node, locked)
    if spot.wants_it:
        return wishes.want(actor=actor, node=lock_node(spot.node), version=locked)
    return _place(actor, spot, locked)


def _place(actor: Actor, spot: Spot, version: Version) -> Residency | None:
    if spot.node.is_closed:
        raise NodeRefused(
            _("Nothing new is placed on %(node)s: it is cordoned, drained, or its engine is to be restarted.")
            % {"node": spot.node},
            field="node",
        )
    tenant = version.adapter.tenant.name
    if queue.pause_of(tenant, version.base_revision.digest, spot.policy):
        raise NoCapacity(_("%(tenant)s has had its loads for this minute. Try again.") % {"tenant": tenant})
    look = look_at_node(actor=actor, version=version, spot=spot)
    if look.residency is not None:
        queue.mark_placed(version, look.residency, policy=spot.policy, wait=queue.Wait(), tier=look.tier)
    elif look.ending is not Ending.ROOM_MADE:
        raise NoCapacity(look.message)
    return look.residency


def _misfit(node: Node, version: Version) -> NodeRefused:
    return NodeRefused(
        _("%(node)s serves %(base)s up to rank %(max)d; %(version)s needs %(wanted)s and rank %(rank)d.")
        % {
            "node": node,
            "base": node.base_revision,
            "max": node.max_rank,
            "version": version,
            "wanted": version.base_revision,
            "rank": version.rank or 0,
        },
        field="version",
    )
