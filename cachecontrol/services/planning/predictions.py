"""What is likely to be asked for soon, for base models whose policy wants that known."""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Count
from django.db.models.functions import TruncHour
from django.utils import timezone

from cachecontrol.models import GatewayRequest, VersionHeat
from cachecontrol.placement.prediction import predict_rate
from cachecontrol.policies import active_policies
from cachecontrol.services.leases import take_lease

_LOOKS_BACK: Final = timedelta(weeks=4, hours=1)
_EVERY: Final = timedelta(minutes=10)


def predict_demand() -> int:
    """Predict anew, if nobody has lately; how many versions are expected to be asked for."""
    wanting = [model for model, policy in active_policies().items() if policy.document.prewarm.predicted]
    if not wanting or not take_lease("predict demand", lasts=_EVERY):
        return 0
    now = timezone.now()
    heats = list(VersionHeat.objects.filter(version__base_revision__base_model__in=wanting, hits__gt=0))
    counts = _hourly({heat.version_id for heat in heats}, since=now - _LOOKS_BACK)
    for heat in heats:
        heat.predicted_per_h = predict_rate(counts.get(heat.version_id, {}), now=now).rate_per_h
    VersionHeat.objects.bulk_update(heats, ["predicted_per_h"])
    return sum(heat.predicted_per_h > 0 for heat in heats)


def _hourly(version_ids: set[UUID], *, since: datetime) -> dict[UUID, dict[datetime, int]]:
    rows = (
        GatewayRequest.objects.filter(version_id__in=version_ids, at__gt=since, is_shadow=False)
        .order_by()
        .values_list("version_id", TruncHour("at"))
        .annotate(number=Count("*"))
    )
    counts: defaultdict[UUID, dict[datetime, int]] = defaultdict(dict)
    for version_id, hour, number in rows:
        counts[version_id][hour] = number
    return counts
