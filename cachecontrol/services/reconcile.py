"""Keeping what is observed in step with what is desired: snapshot → decide → apply one change → look again."""

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from cachecontrol import events
from cachecontrol.models import Residency
from cachecontrol.reconcile import (
    Decision,
    Forget,
    Send,
    SendEvict,
    SendFetch,
    SendWarm,
    Snapshot,
    StartDrain,
    Timing,
    Wait,
    Withdraw,
    decide,
)
from cachecontrol.selectors import list_unsettled_residencies, residencies_with_relations
from cachecontrol.services import wishes
from cachecontrol.services.commands import (
    EVICT,
    FETCH,
    WARM,
    Command,
    evict_command,
    fetch_command,
    warm_command,
    watches_use,
)
from cachecontrol.services.evictions import REMOTE, record_eviction
from cachecontrol.services.lifecycle import tend_nodes
from cachecontrol.services.outcomes import pause_after
from cachecontrol.services.planning.soon import replan_soon
from cachecontrol.states import Desired, EvictionReason, NodeStatus, Observed
from cachecontrol.transitions import move_observed, note
from registry import dispatch
from registry.actors import Actor, system_actor
from registry.errors import SignerUnavailable
from registry.states import VersionState
from registry.stores.errors import StoreError

logger = logging.getLogger(__name__)

# Each pass makes one change; more than this many in a row are left to the next sweep.
_PASSES: Final = 6
# In this time a change has reached every gateway that is not cut off.
_ROUTING_STOP: Final = timedelta(seconds=0.3)


def reconcile_version(*, version_id: UUID) -> None:
    """Do whatever can be done now for one version, on every node."""
    for residency in Residency.objects.filter(version_id=version_id).order_by("pk"):
        reconcile_residency(residency_id=residency.pk)


def reconcile_residency(*, residency_id: int) -> Decision:
    """Do whatever can be done now for one residency and return why there is nothing more to do."""
    actor = system_actor("reconciler")
    decision: Decision = Wait("nothing is known of it")
    for _pass in range(_PASSES):
        decision, residency = _change_once(actor, residency_id)
        if residency is None or isinstance(decision, Wait | Forget):
            break
        if isinstance(decision, Send):
            _send(residency, decision)
    return decision


def take_command(*, residency: Residency) -> Callable[[], None] | None:
    """What sends the command that a wish is due, if it is due one now; for who can't wait for a transaction more.

    It runs in the transaction that made the wish and holds the residency, in which the command counts as sent. Call
    what it gives after the commit; if the process dies in between, the sweep sends the command again.
    """
    decision = _change(system_actor("reconciler"), residency)
    return partial(_send, residency, decision) if isinstance(decision, Send) else None


def sweep_residencies() -> None:
    """Repair what a lost message or a killed process left behind. One residency's trouble doesn't stop the others."""
    try:
        tend_nodes(actor=system_actor("reconciler"))
    except Exception:
        logger.exception("nodes are looked after again by the next sweep")
    for residency_id in list_unsettled_residencies().values_list("pk", flat=True):
        try:
            reconcile_residency(residency_id=residency_id)
        except Exception:
            logger.exception("residency %s is left to the next sweep", residency_id)


@transaction.atomic
def _change_once(actor: Actor, residency_id: int) -> tuple[Decision, Residency | None]:
    residency = (
        residencies_with_relations().select_for_update(of=("self",), no_key=True).filter(pk=residency_id).first()
    )
    return (Forget(), None) if residency is None else (_change(actor, residency), residency)


def _change(actor: Actor, residency: Residency) -> Decision:
    """Make the next change of a residency that the transaction holds."""
    now = timezone.now()
    decision = decide(_snapshot(residency), now, timing=_timing())
    match decision:
        case Withdraw(reason):
            record_eviction(residency=residency, to=REMOTE, reason=EvictionReason.WITHDRAWN)
            wishes.release(actor=actor, residency=residency, reason=reason)
            replan_soon(residency.node.base_revision.digest)
        case StartDrain(until):
            was = Observed(residency.observed)
            move_observed(residency, was=was, to=Observed.DRAINING, drain_until=until)
            events.residency_observed(actor=actor, residency=residency, was=was, generation=residency.generation)
        case SendWarm() | SendFetch() | SendEvict():
            note(residency, command_sent_at=now, retry_at=None)
        case Forget():
            events.residency_forgotten(actor=actor, residency=residency)
            residency.delete()
        case Wait():
            pass
    return decision


def _send(residency: Residency, decision: Send) -> None:
    """Outside of the transaction, since store, signer and broker may be slow. Their failure leaves it to the sweep."""
    try:
        task, command = _command(residency, decision)
        dispatch.send_to_node(residency.node.name, task, command)
    except (dispatch.BrokerAway, SignerUnavailable, StoreError) as error:
        logger.warning("no command for %s, the sweep will send it: %s", residency, error)
        _take_back(residency)


def _command(residency: Residency, decision: Send) -> tuple[str, Command]:
    match decision:
        case SendWarm():
            return WARM, warm_command(residency)
        case SendFetch():
            return FETCH, fetch_command(residency)
        case SendEvict():
            return EVICT, evict_command(residency)


def _take_back(residency: Residency) -> None:
    """The command was never sent: let it be due again soon, unless something else has happened since."""
    Residency.objects.filter(
        pk=residency.pk, generation=residency.generation, command_sent_at=residency.command_sent_at
    ).update(command_sent_at=None, retry_at=timezone.now() + pause_after(1))


def _snapshot(residency: Residency) -> Snapshot:
    node, version = residency.node, residency.version
    return Snapshot(
        desired=Desired(residency.desired),
        observed=Observed(residency.observed),
        generation=residency.generation,
        acted_generation=residency.acted_generation,
        command_sent_at=residency.command_sent_at,
        retry_at=residency.retry_at,
        drain_until=residency.drain_until,
        state_changed_at=residency.state_changed_at,
        is_servable=wishes.is_servable(version),
        is_revoked=version.state == VersionState.REVOKED,
        fits_node=(version.base_revision.digest == node.base_revision.digest and (version.rank or 0) <= node.max_rank),
        node_status=NodeStatus(node.status),
        engine_healthy=node.engine_healthy and not node.poisoned,
        is_recycling=node.recycling_since is not None,
        watches_use=watches_use(node),
    )


def _timing() -> Timing:
    return Timing(
        command_deadline=timedelta(seconds=settings.COMMAND_DEADLINE_S),
        drain=timedelta(seconds=settings.DRAIN_S),
        routing_stop=min(_ROUTING_STOP, timedelta(seconds=settings.DRAIN_S)),
    )
