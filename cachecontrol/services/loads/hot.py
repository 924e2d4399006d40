"""Which versions of an engine count as in its GPU slots. Changing that sends no command."""

from cachecontrol.models import Residency
from cachecontrol.quotas import Resource, admits
from cachecontrol.services.evictions import Need, Verdict, record_eviction
from cachecontrol.services.places import Spot
from cachecontrol.states import EvictionReason, Tier


def heat_newcomer(residency: Residency, *, spot: Spot, need: Need) -> None:
    """Count what was just asked for as hot while there is room; whom it would displace is the plan's matter."""
    slot = {Resource.GPU_SLOTS: 1}
    admission = admits(tenant=need.tenant, wants=slot, quotas=spot.policy.quotas, used=need.used or {})
    if not residency.is_hot and spot.hot < spot.policy.hot_limit(spot.node.gpu_slots) and not admission.only_itself:
        set_hot(residency)


def set_hot(residency: Residency) -> None:
    Residency.objects.filter(pk=residency.pk).update(is_hot=True)
    residency.is_hot = True


def cool(residency: Residency, *, reason: EvictionReason, verdict: Verdict | None = None) -> None:
    """Count it as in the engine, but in no slot. Quiet when it is so already."""
    if not residency.is_hot:
        return
    record_eviction(residency=residency, to=Tier.CPU, reason=reason, verdict=verdict)
    Residency.objects.filter(pk=residency.pk).update(is_hot=False)
    residency.is_hot = False
