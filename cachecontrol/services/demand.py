"""A version is asked for and is warm nowhere: find a place for it. However many ask, it is loaded once."""

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from cachecontrol.models import Residency
from cachecontrol.policies import active_policy
from cachecontrol.services import wishes
from cachecontrol.services.loads.attempts import (
    Ask,
    Demand,
    demand_place,
    state_on_nodes,
    wanted_residencies,
    with_wait,
)
from cachecontrol.services.loads.placing import Stall
from cachecontrol.services.loads.queue import Wait
from cachecontrol.services.loads.telling import tell_refusals
from cachecontrol.services.loads.turns import look_again_soon, serve_pool
from cachecontrol.states import Observed
from registry.actors import Actor
from registry.permissions import Action, require_on_platform
from registry.selectors import get_version_by_id

# How exactly the last use is kept.
_USE_PRECISION = timedelta(seconds=1)


def demand_version(
    *,
    actor: Actor,
    version_id: UUID,
    waiting: int = 1,
    longest: timedelta | None = None,
    in_flight: Collection[UUID] = (),
) -> Demand:
    """Have the version loaded somewhere, as a gateway asks for it. Asking again changes nothing.

    ``waiting`` requests of the gateway wait for it, the last of them for ``longest`` more, and no longer than its
    tenant's class of service says; ``in_flight`` are the versions that answer through the gateway now.

    Raises:
        NotFound: there is no such version.

    """
    require_on_platform(actor, Action.DEMAND_VERSION)
    ask = Ask(wait=Wait(waiting=waiting, longest=longest), in_flight=frozenset(in_flight))
    demand = bring_up(actor=actor, version_id=version_id, ask=ask)
    if demand.over:
        tell_refusals(actor=actor, version_id=version_id, demand=demand)
    if in_flight:
        _note_use(in_flight)
    return demand


def prewarm_version(*, actor: Actor, version_id: UUID) -> None:
    """Have the new target of an alias loaded before it is asked for; the port of releases. No place, no matter.

    Quiet when the policy doesn't want that. The caller has checked that the actor may move the alias.
    """
    version = get_version_by_id(version_id=version_id)
    if active_policy(version.base_revision.base_model_id).document.prewarm.on_release:
        bring_up(actor=actor, version_id=version_id, ask=Ask())


def bring_up(*, actor: Actor, version_id: UUID, ask: Ask) -> Demand:
    """Find out how the version stands, and find a place for it if it has none."""
    known = state_on_nodes(wanted_residencies(version_id))
    if known is not None:
        version = get_version_by_id(version_id=version_id)
        if wishes.is_servable(version):
            return with_wait(known, version)
    return _in_turn(version_id, demand_place(actor=actor, version_id=version_id, ask=ask))


def _in_turn(version_id: UUID, demand: Demand) -> Demand:
    """What waits only because others do may have its turn already."""
    if demand.stall not in (Stall.TURN, Stall.PLACE):
        return demand
    pool = get_version_by_id(version_id=version_id).base_revision.digest
    if demand.stall is Stall.PLACE:
        look_again_soon(pool)
        return demand
    serve_pool(pool)
    known = state_on_nodes(wanted_residencies(version_id))
    return demand if known is None else replace(known, wait_s=demand.wait_s)


@transaction.atomic
def _note_use(version_ids: Collection[UUID]) -> None:
    """Who answers now is in use, for those too that look for a victim without being told."""
    now = timezone.now()
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - _USE_PRECISION)
    found = Residency.objects.filter(stale, version__in=version_ids, observed=Observed.LOADED.value).order_by("pk")
    # Whoever holds one now is about to change it; the next demand tells of it again.
    keys = list(found.select_for_update(no_key=True, skip_locked=True).values_list("pk", flat=True))
    Residency.objects.filter(pk__in=keys).update(last_used_at=now)
