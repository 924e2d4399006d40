"""An eviction as its reader may see it: without the names of tenants that are none of theirs."""

from dataclasses import dataclass

from cachecontrol.models import Eviction
from registry.actors import Actor
from registry.permissions import can_see_tenant, sees_all_tenants


@dataclass(frozen=True, slots=True)
class SeenEviction:
    """``runner_up`` and ``asked_by`` are empty where there is none, and where they may not be told."""

    row: Eviction
    runner_up: str
    asked_by: str

    @property
    def hides_runner_up(self) -> bool:
        return self.row.runner_up_id is not None and not self.runner_up

    @property
    def margin(self) -> float | None:
        """By how much the runner-up was worth more."""
        if self.row.score is None or self.row.runner_up_score is None:
            return None
        return self.row.runner_up_score - self.row.score


def told_to(actor: Actor, eviction: Eviction) -> SeenEviction:
    runner_up, tenant = eviction.runner_up, eviction.version.adapter.tenant
    is_told = runner_up is not None and can_see_tenant(actor, runner_up.adapter.tenant_id)
    asked_by = eviction.asked_by if sees_all_tenants(actor) or eviction.asked_by == tenant.name else ""
    return SeenEviction(eviction, runner_up=str(runner_up) if is_told else "", asked_by=asked_by)
