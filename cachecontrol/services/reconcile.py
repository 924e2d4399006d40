"""Keeping what is observed in step with what is desired: snapshot → decide → apply one change → look again."""

import logging
from datetime import timedelta
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
    SendEvict,
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
from cachecontrol.services.commands import EVICT, WARM, evict_command, warm_command
from cachecontrol.services.nodes import mark_lost_nodes
from cachecontrol.services.reports import pause_after
from cachecontrol.states import Desired, NodeStatus, Observed
from cachecontrol.transitions import move_observed, note
from registry import dispatch
from registry.actors import Actor, system_actor
from registry.errors import SignerUnavailable
from registry.states import VersionState
from registry.stores.errors import StoreError

logger = logging.getLogger(__name__)

# Each pass makes one change; more than this many in a row are left to the next sweep.
_PASSES: Final = 6


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
        if isinstance(decision, SendWarm | SendEvict):
            _send(residency, decision)
    return decision


def sweep_residencies() -> None:
    """Repair what a lost message or a killed process left behind. One residency's trouble doesn't stop the others."""
    try:
        mark_lost_nodes(actor=system_actor("reconciler"))
    except Exception:
        logger.exception("lost nodes are looked for again by the next sweep")
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
    if residency is None:
        return Forget(), None
    now = timezone.now()
    decision = decide(_snapshot(residency), now, timing=_timing())
    match decision:
        case Withdraw(reason):
            wishes.release(actor=actor, residency=residency, reason=reason)
        case StartDrain(until):
            was = Observed(residency.observed)
            move_observed(residency, was=was, to=Observed.DRAINING, drain_until=until)
            events.residency_observed(actor=actor, residency=residency, was=was, generation=residency.generation)
        case SendWarm() | SendEvict():
            note(residency, command_sent_at=now, retry_at=None)
        case Forget():
            events.residency_forgotten(actor=actor, residency=residency)
            residency.delete()
        case Wait():
            pass
    return decision, residency


def _send(residency: Residency, decision: SendWarm | SendEvict) -> None:
    """Outside of the transaction, since store, signer and broker may be slow. Their failure leaves it to the sweep."""
    try:
        if isinstance(decision, SendWarm):
            dispatch.send_to_node(residency.node.name, WARM, warm_command(residency))
        else:
            dispatch.send_to_node(residency.node.name, EVICT, evict_command(residency))
    except (dispatch.BrokerAway, SignerUnavailable, StoreError) as error:
        logger.warning("no command for %s, the sweep will send it: %s", residency, error)
        _take_back(residency)


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
        engine_healthy=node.engine_healthy,
    )


def _timing() -> Timing:
    return Timing(
        command_deadline=timedelta(seconds=settings.COMMAND_DEADLINE_S), drain=timedelta(seconds=settings.DRAIN_S)
    )
