"""The parts of the request path, joined."""

from dataclasses import dataclass

from gateway.cold import ColdLoads
from gateway.completions import CompletionPath, PathParts
from gateway.demand import DemandPort
from gateway.limits import TenantLimits
from gateway.nodes.fleet import Fleet
from gateway.path.hedging import Hedging
from gateway.path.racing import Hedges
from gateway.path.targets import Targets
from gateway.path.warmth import Warmth
from gateway.routing.absences import Absences
from gateway.routing.choose import Places
from gateway.routing.current import CurrentSnapshot
from gateway.shadow.mirror import Budget, Mirror, ShadowRecords
from gateway.upstream.ports import Upstream
from gateway.waiting.crowd import Crowd
from gateway.waiting.room import WaitingRoom


@dataclass(frozen=True, slots=True, kw_only=True)
class PathLimits:
    """How long (seconds from arrival) and how many may wait, all and of each tenant, and what shadows may take.

    `hedging` says when a second node is asked as well; None: never.
    """

    cold_wait_s: float
    max_waiting: int
    max_waiting_each: int
    shadows: Budget
    hedging: Hedging | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """The path, and those of its parts that others look at."""

    path: CompletionPath
    fleet: Fleet
    room: WaitingRoom
    mirror: Mirror
    hedges: Hedges | None = None

    def facts(self) -> dict[str, object]:
        """What `/readyz` tells of them."""
        totals, counts = self.path.totals, self.mirror.counts
        return {
            "in_flight": self.fleet.in_flight,
            "waiting": len(self.room),
            "version_mismatch": totals.version_mismatch,
            "retries": totals.retries,
            "shadows": {"compared": counts.compared, "failed": counts.failed, "left_out": counts.left_out},
            **_hedged(self.hedges),
        }


def join_path(
    limits: PathLimits,
    *,
    current: CurrentSnapshot,
    absences: Absences,
    demand: DemandPort,
    upstream: Upstream,
    records: ShadowRecords,
    tenants: TenantLimits,
    look_s: float = 0.2,
) -> Joined:
    """A path over the snapshot in force; `look_s` as in ColdLoads."""
    fleet, places = Fleet(), Places()
    room = WaitingRoom(most=limits.max_waiting, most_each=limits.max_waiting_each)
    crowd = Crowd(room)
    fleet.on_room = crowd.call
    cold = ColdLoads(
        demand=demand,
        current=current,
        is_warm=Warmth(current=current, absences=absences, fleet=fleet, places=places).is_warm,
        in_flight=fleet.versions,
        room=room,
        look_s=look_s,
    )
    targets = Targets(
        current=current,
        absences=absences,
        fleet=fleet,
        cold=cold,
        crowd=crowd,
        places=places,
        cold_wait_s=limits.cold_wait_s,
    )
    mirror = Mirror(
        current=current,
        absences=absences,
        places=places,
        fleet=fleet,
        upstream=upstream,
        records=records,
        budget=limits.shadows,
    )
    hedging = limits.hedging
    hedges = None if hedging is None else Hedges(hedging, upstream=upstream, fleet=fleet, nodes=targets)
    parts = PathParts(current, absences, fleet, tenants, targets, upstream, mirror, hedges)
    return Joined(CompletionPath(parts, cold_wait_s=limits.cold_wait_s), fleet, room, mirror, hedges)


def _hedged(hedges: Hedges | None) -> dict[str, object]:
    return {} if hedges is None else {"hedges": hedges.counts.sent, "hedges_won": hedges.counts.won}
