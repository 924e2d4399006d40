"""Letting a version leave its nodes that was rolled back from; the port of releases."""

from uuid import UUID

from django.db import transaction

from cachecontrol.models import Residency
from cachecontrol.selectors import lock_node
from cachecontrol.services import wishes
from cachecontrol.services.evictions import REMOTE, record_eviction
from cachecontrol.states import Desired, EvictionReason
from registry.actors import Actor
from registry.models import Version
from releases.warmth import cooled_versions


def cool(*, actor: Actor, version_id: UUID, reason: str) -> None:
    """Want the version nowhere any more, unless an alias, a split or a release refers to it. Quiet when it is cold.

    It leaves in the safe order: requests that it still answers are waited for.
    """
    held = Residency.objects.select_related("node").filter(version_id=version_id).exclude(desired=Desired.ABSENT.value)
    for residency in held.order_by("pk"):
        _cool(actor, residency, reason)


@transaction.atomic
def _cool(actor: Actor, known: Residency, reason: str) -> None:
    # Whoever wants it loaded holds the version, too.
    list(Version.objects.select_for_update(no_key=True).filter(pk=known.version_id).values_list("pk"))
    if not cooled_versions(versions=[known.version_id]):
        return
    residency = wishes.lock_residency(node=lock_node(known.node), version_id=known.version_id)
    if residency is None or residency.desired == Desired.ABSENT:
        return
    record_eviction(residency=residency, to=REMOTE, reason=EvictionReason.ROLLBACK)
    wishes.release(actor=actor, residency=residency, reason=reason)
