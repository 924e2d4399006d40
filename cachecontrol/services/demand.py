"""A version is asked for and is warm nowhere: find a place for it. However many ask, it is loaded once."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from cachecontrol.models import Node, Residency
from cachecontrol.placement import Candidate, Nowhere, Place, Readiness, choose_node
from cachecontrol.selectors import residencies_with_relations
from cachecontrol.services import wishes
from cachecontrol.services.places import candidates, is_broken, lock_nodes_for, readiness_of, wanted_of
from cachecontrol.states import DemandState, Desired, ErrorClass, Observed
from registry.actors import Actor
from registry.models import Version
from registry.permissions import Action, require_on_platform
from registry.selectors import get_version_by_id, versions_with_relations

_TRIES: Final = 4
# How exactly the last demand is kept: it only says who is least recently used.
_DEMAND_PRECISION: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Demand:
    """The answer to a demand: a state, and a sentence for people."""

    state: DemandState
    message: str = ""


def demand_version(*, actor: Actor, version_id: UUID) -> Demand:
    """Have the version loaded somewhere, as a gateway asks for it. Asking again changes nothing.

    Raises:
        NotFound: there is no such version.

    """
    require_on_platform(actor, Action.DEMAND_VERSION)
    return bring_up(actor=actor, version_id=version_id)


def prewarm_version(*, actor: Actor, version_id: UUID) -> None:
    """Have the new target of an alias loaded before it is asked for; the port of releases. No place, no matter.

    The caller has checked that the actor may move the alias.
    """
    bring_up(actor=actor, version_id=version_id)


def bring_up(*, actor: Actor, version_id: UUID) -> Demand:
    """Find out how the version stands, and find a place for it if it has none."""
    version = get_version_by_id(version_id=version_id)
    known = _state_on_nodes(_wanted_residencies(version))
    if known is not None and wishes.is_servable(version):
        return known
    for _attempt in range(_TRIES):
        answer = _place(actor, version)
        if answer is not None:
            return answer
    return Demand(DemandState.NO_CAPACITY, _("Others take the places. Try again."))


@transaction.atomic
def _place(actor: Actor, version: Version) -> Demand | None:
    """One look under locks; None when a version was asked to make room: look again."""
    locked = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version.pk)
    if not wishes.is_servable(locked):
        return Demand(DemandState.REFUSED, _("The version is %(state)s.") % {"state": locked.state})
    nodes = lock_nodes_for(locked)
    held = _wanted_residencies(locked)
    known = _state_on_nodes(held)
    if known is not None:
        return known
    broken = {residency.node_id for residency in held if is_broken(residency)}
    possible = [node for node in nodes if node.pk not in broken]
    choice = choose_node(_without_it(candidates(possible, locked), locked), wanted_of(locked), now=timezone.now())
    if isinstance(choice, Nowhere):
        return _nowhere(choice, held)
    return _take(actor, choice, nodes=possible, version=locked)


def _take(actor: Actor, place: Place, *, nodes: Iterable[Node], version: Version) -> Demand | None:
    node = next(node for node in nodes if node.name == place.node)
    if place.victim is not None:
        wishes.release_victim(actor=actor, node=node, version_id=place.victim)
        return None
    wishes.want(actor=actor, node=node, version=version, demanded_at=timezone.now())
    return Demand(DemandState.LOADING, _("It is being loaded."))


def _wanted_residencies(version: Version) -> list[Residency]:
    return list(residencies_with_relations().filter(version=version, desired=Desired.GPU.value).order_by("pk"))


def _state_on_nodes(residencies: Iterable[Residency]) -> Demand | None:
    """How the version stands on nodes that can serve or load it; None if it is on none of them."""
    on_the_way = None
    for residency in residencies:
        if readiness_of(residency.node) is Readiness.UNUSABLE or is_broken(residency):
            continue
        _touch(residency)
        if residency.observed == Observed.LOADED and residency.node.engine_healthy:
            return Demand(DemandState.LOADED)
        on_the_way = on_the_way or _pending(residency)
    return on_the_way


def _pending(residency: Residency) -> Demand:
    if residency.error_class == ErrorClass.CAPACITY:
        return Demand(DemandState.NO_CAPACITY, residency.message)
    return Demand(DemandState.LOADING, residency.message or _("It is being loaded."))


def _nowhere(choice: Nowhere, held: Iterable[Residency]) -> Demand:
    failed = next((residency for residency in held if is_broken(residency)), None)
    if failed is not None:
        return Demand(DemandState.FAILED, failed.message)
    if choice is Nowhere.NO_CAPACITY:
        return Demand(DemandState.NO_CAPACITY, _("Every place is taken by versions that are in use."))
    return Demand(DemandState.NO_NODE, _("No node that is up serves this version's base model and rank."))


def _without_it(nodes: Iterable[Candidate], version: Version) -> list[Candidate]:
    """Nodes on which the version isn't wanted yet; elsewhere asking again would change nothing."""
    return [node for node in nodes if all(resident.version_id != version.pk for resident in node.residents)]


def _touch(residency: Residency) -> None:
    now = timezone.now()
    stale = Q(last_demand_at__isnull=True) | Q(last_demand_at__lt=now - _DEMAND_PRECISION)
    if residency.last_demand_at is None or residency.last_demand_at < now - _DEMAND_PRECISION:
        Residency.objects.filter(stale, pk=residency.pk).update(last_demand_at=now)
