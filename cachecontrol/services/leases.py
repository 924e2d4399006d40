"""What only one process should do at a time: whoever gets the lease does it, the others do without."""

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from cachecontrol.models import Lease


@transaction.atomic
def take_lease(name: str, *, lasts: timedelta) -> datetime | None:
    """Until when the caller may do it and nobody else, unless it is given back before; None: somebody else may now."""
    now = timezone.now()
    until = now + lasts
    if Lease.objects.filter(name=name, held_until__lte=now).update(held_until=until):
        return until
    _lease, is_new = Lease.objects.get_or_create(name=name, defaults={"held_until": until})
    return until if is_new else None


def give_back_lease(name: str, *, until: datetime) -> None:
    """Let the next one do it at once, unless it ran out and somebody else has it already."""
    Lease.objects.filter(name=name, held_until=until).update(held_until=timezone.now())
