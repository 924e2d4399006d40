"""Warming a version on a node and evicting it, as an operator asks for it."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from cachecontrol.errors import NoCapacity, NodeRefused
from cachecontrol.models import Node, Residency
from cachecontrol.placement import Candidate, choose_victim, fits
from cachecontrol.selectors import lock_node
from cachecontrol.services import wishes
from cachecontrol.services.places import candidates, wanted_of
from registry.actors import Actor
from registry.errors import NotFound
from registry.models import Version
from registry.permissions import Action, require_in_tenant
from registry.selectors import versions_with_relations

_TRIES = 4


def warm_version(*, actor: Actor, node: Node, version: Version) -> Residency:
    """Want the version loaded on this very node. Quiet while it is loaded or on its way; what failed is tried anew.

    When the node is full, the least recently used version that no alias points to leaves it first.

    Raises:
        VersionNotServable: it is not approved, or revoked.
        NodeRefused: the node has another base revision, or too few ranks.
        NoCapacity: every place is taken by versions that may not leave now.

    """
    require_in_tenant(actor, Action.OPERATE_VERSION, version.adapter.tenant_id)
    for _attempt in range(_TRIES):
        residency = _warm(actor, node, version)
        if residency is not None:
            return residency
    raise NoCapacity(_("Others take the places on %(node)s. Try again.") % {"node": node})


@transaction.atomic
def evict_version(*, actor: Actor, node: Node, version: Version, reason: str = "") -> Residency:
    """Want the version to leave this node, in the safe order. Quiet when it isn't wanted there anyway.

    Raises:
        NotFound: the version has never been on this node.

    """
    require_in_tenant(actor, Action.OPERATE_VERSION, version.adapter.tenant_id)
    residency = wishes.lock_residency(node=node, version_id=version.pk)
    if residency is None:
        raise NotFound(
            _("%(version)s is not on the node %(node)s.") % {"version": version, "node": node}, field="version"
        )
    wishes.release(actor=actor, residency=residency, reason=reason)
    return residency


@transaction.atomic
def _warm(actor: Actor, node: Node, version: Version) -> Residency | None:
    """The residency, or None when a place was made: look again."""
    locked = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version.pk)
    wishes.require_servable(locked)
    held = lock_node(node)
    candidate = candidates([held], locked)[0]
    _require_fit(candidate, held, locked)
    if not _is_wanted(candidate, locked) and candidate.free <= 0:
        _make_room(actor, candidate, held)
        return None
    return wishes.want(actor=actor, node=held, version=locked)


def _is_wanted(candidate: Candidate, version: Version) -> bool:
    return any(resident.version_id == version.pk for resident in candidate.residents)


def _require_fit(candidate: Candidate, node: Node, version: Version) -> None:
    if fits(candidate, wanted_of(version)):
        return
    raise NodeRefused(
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


def _make_room(actor: Actor, candidate: Candidate, node: Node) -> None:
    victim = choose_victim(candidate, now=timezone.now())
    if victim is None:
        raise NoCapacity(
            _("All %(places)d places on %(node)s are taken by versions that are in use or that aliases point to.")
            % {"places": candidate.places, "node": node}
        )
    wishes.release_victim(actor=actor, node=node, version_id=victim.version_id)
