"""What tenants are told of loads that were refused: their audit log says so, and whoever takes its events hears it."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction

from cachecontrol import events
from cachecontrol.services.leases import take_lease
from cachecontrol.services.loads.attempts import Demand
from registry.actors import Actor
from registry.models import Version
from registry.selectors import get_version_by_id

# However many are refused in so long, the log is told once of each tenant and resource.
_ONCE_IN: Final = timedelta(minutes=1)


def tell_refusals(*, actor: Actor, version_id: UUID, demand: Demand) -> None:
    """Tell of what the tenant's quota was short of, unless that was told a moment ago."""
    version = get_version_by_id(version_id=version_id)
    for resource in demand.over:
        _tell(actor, version, resource, demand.message)


@transaction.atomic
def _tell(actor: Actor, version: Version, resource: str, reason: str) -> None:
    if take_lease(f"tell of the quota {version.adapter.tenant_id} {resource}", lasts=_ONCE_IN):
        events.quota_refused(actor=actor, version=version, resource=resource, reason=reason)
