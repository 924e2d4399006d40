"""Reading the fleet for those who look at it: nodes by tier, what is under way, how long loads take.

Each function asks once for all the nodes or loads that it is given. Names and counts are of what the actor may see.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django.db.models import Aggregate, Count, F, FloatField, OuterRef, Q, QuerySet, Subquery, Sum, Window
from django.db.models.functions import Coalesce, RowNumber
from django.utils import timezone
from django.utils.translation import gettext as _

from cachecontrol.models import LoadRequest, Node, Residency
from cachecontrol.models.loads import OPEN
from cachecontrol.models.nodes import CLOSED
from cachecontrol.selectors import nodes_with_relations, residencies_with_relations
from cachecontrol.states import Desired, LoadState, NodeStatus, Observed, Tier
from registry.actors import Actor
from registry.errors import NotFound
from registry.models import Tenant, Version
from registry.permissions import Action, require_on_platform, sees_all_tenants
from registry.selectors import versions_with_relations

# How far back loads are looked at for their times.
LOADS_OF: Final = timedelta(days=1)
# Of what an engine holds outside its slots, so many are named on the map.
NAMED: Final = 4
_MOVING: Final = (Observed.FETCHING.value, Observed.LOADING.value, Observed.DRAINING.value)
_GONE: Final = Q(desired=Desired.ABSENT.value, observed=Observed.ABSENT.value)
_GAVE_UP: Final = Q(observed=Observed.FAILED.value, acted_generation=F("generation"))
IN_WORK: Final = (Q(observed__in=_MOVING) | Q(generation__gt=F("acted_generation"))) & ~_GAVE_UP
_DRIFTS: Final = ("unknown", "mismatched")
_IN_ENGINE: Final = (Tier.GPU.value, Tier.CPU.value)


class Percentile(Aggregate):
    """``percentile_cont`` over the rows of a group."""

    function = "percentile_cont"
    template = "%(function)s(%(fraction)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()

    def __init__(self, expression: str, *, fraction: float, **extra: Any) -> None:  # noqa: ANN401  Django's own signature
        super().__init__(expression, fraction=fraction, **extra)


@dataclass(slots=True)
class NodeTiers:
    """What a node has, as far as the actor may see it.

    Attributes:
        gpu, cpu, disk: how many versions are there, each counted where it was last known to be highest.
        in_work: how many have a command under way.
        loads, p95_ms: how many loads into its engine ended within a day, and what 19 of 20 of them took at most.
        slots: what is in the engine's slots, the last used first.
        memory: the first of what is in the engine and in no slot.

    """

    gpu: int = 0
    cpu: int = 0
    disk: int = 0
    in_work: int = 0
    loads: int = 0
    p95_ms: float | None = None
    slots: list[Residency] = field(default_factory=list)
    memory: list[Residency] = field(default_factory=list)

    @property
    def is_estimate(self) -> bool:
        return any(residency.tier_is_estimate for residency in (*self.slots, *self.memory))


@dataclass(frozen=True, slots=True)
class FleetCount:
    """Nodes by how they are: ``closed`` ones take nothing new, ``unsound`` ones need a restart.

    ``slots`` are the GPU slots of all of them, ``hot`` the versions that count as in one.
    """

    nodes: int
    up: int
    lost: int
    closed: int
    unsound: int
    slots: int
    hot: int


@dataclass(frozen=True, slots=True)
class LoadUnderWay:
    """A version that somebody waits for, and how far it has come on its node."""

    request: LoadRequest
    observed: str

    @property
    def step(self) -> int:
        """From 0, in the queue, to 3, on its way into the engine."""
        if self.request.state == LoadState.QUEUED:
            return 0
        return {Observed.FETCHING.value: 2, Observed.ON_DISK.value: 2, Observed.LOADING.value: 3}.get(self.observed, 1)


def list_pool_nodes(*, actor: Actor, text: str = "", standing: str = "") -> QuerySet[Node]:
    """Nodes as they stand, without what is on them.

    ``text`` is part of the name of a node or its base model, ``standing`` one of ``STANDINGS``.
    """
    require_on_platform(actor, Action.VIEW_PLATFORM)
    found = nodes_with_relations()
    if text:
        found = found.filter(Q(name__icontains=text) | Q(base_revision__base_model__name__icontains=text))
    return found.filter(STANDINGS[standing]) if standing in STANDINGS else found


_UNSOUND: Final = Q(tainted=True) | Q(poisoned=True) | Q(stuck=True) | Q(engine_sick_since__isnull=False)
STANDINGS: Final[Mapping[str, Q]] = {
    "closed": CLOSED,
    "unsound": _UNSOUND,
    "lost": Q(status=NodeStatus.LOST.value),
    "new": Q(status=NodeStatus.NEW.value),
}


def count_fleet(*, actor: Actor) -> FleetCount:
    require_on_platform(actor, Action.VIEW_PLATFORM)
    of_node = Residency.objects.filter(node=OuterRef("pk"), is_hot=True).order_by().values("node")
    hot = of_node.annotate(count=Count("pk"))
    counted = Node.objects.aggregate(
        nodes=Count("pk"),
        up=Count("pk", filter=Q(status=NodeStatus.UP.value)),
        lost=Count("pk", filter=STANDINGS["lost"]),
        closed=Count("pk", filter=CLOSED),
        unsound=Count("pk", filter=_UNSOUND),
        slots=Coalesce(Sum("gpu_slots"), 0),
        hot=Coalesce(Sum(Subquery(hot.values("count"))), 0),
    )
    return FleetCount(**counted)


def read_tiers(*, actor: Actor, nodes: Collection[Node]) -> dict[int, NodeTiers]:
    """What each of the nodes has, by its primary key."""
    found = {node.pk: NodeTiers() for node in nodes}
    recent = Q(load_ms__isnull=False, state_changed_at__gt=timezone.now() - LOADS_OF)
    counted = (
        _seen(actor, Residency.objects.filter(node__in=found).exclude(_GONE))
        .order_by()
        .values_list("node_id")
        .annotate(
            gpu=Count("pk", filter=Q(tier=Tier.GPU.value)),
            cpu=Count("pk", filter=Q(tier=Tier.CPU.value)),
            disk=Count("pk", filter=Q(tier=Tier.DISK.value)),
            in_work=Count("pk", filter=IN_WORK),
            loads=Count("pk", filter=recent),
            p95_ms=Percentile("load_ms", fraction=0.95, filter=recent),
        )
    )
    for node_id, *numbers in counted:
        found[node_id] = NodeTiers(*numbers)
    for residency in _named(actor, found):
        tiers = found[residency.node_id]
        (tiers.slots if residency.tier == Tier.GPU else tiers.memory).append(residency)
    return found


def list_on_node(*, actor: Actor, node: Node, tier: str = "") -> QuerySet[Residency]:
    """What the node has or is to have, in the one tier or in work (``moving``) if that is asked for."""
    require_on_platform(actor, Action.VIEW_PLATFORM)
    held = _seen(actor, residencies_with_relations().filter(node=node).exclude(_GONE))
    if tier == "moving":
        return held.filter(IN_WORK)
    return held.filter(tier=tier) if tier in set(Tier) else held


def list_loads(*, actor: Actor, most: int, node: Node | None = None) -> list[LoadUnderWay]:
    """The loads that somebody waits for, the longest wait first; ``most`` and one more, to tell that there are more."""
    require_on_platform(actor, Action.VIEW_PLATFORM)
    found = LoadRequest.objects.select_related("node", "version__adapter__tenant").filter(state__in=OPEN)
    if node is not None:
        found = found.filter(node=node)
    if not sees_all_tenants(actor):
        found = found.filter(tenant__in=list(actor.roles))
    rows = list(found.order_by("enqueued_at", "pk")[: most + 1])
    placed = [row for row in rows if row.node_id is not None]
    on_nodes = Residency.objects.filter(
        node__in={row.node_id for row in placed}, version__in={row.version_id for row in placed}
    )
    known = on_nodes.values_list("node_id", "version_id", "observed") if placed else ()
    observed = {(node_id, version_id): state for node_id, version_id, state in known}
    return [LoadUnderWay(row, observed.get((row.node_id or 0, row.version_id), "")) for row in rows]


def version_of(*, owner: Tenant, adapter: str, name: str) -> Version:
    """The version, for pages that have asked for their action in its tenant. Raises ``NotFound``."""
    found = versions_with_relations().defer("base_revision__description")
    version = found.filter(adapter__tenant=owner, adapter__name=adapter, name=name).first()
    if version is None:
        raise NotFound(
            _("%(tenant)s has no version %(adapter)s@%(name)s.") % {"tenant": owner, "adapter": adapter, "name": name},
            field="version",
        )
    return version


def drift_seen(*, actor: Actor, nodes: Iterable[Node]) -> dict[int, dict[str, list[str]]]:
    """What each node's engine had that it shouldn't, by the node's primary key.

    A name tells of an adapter and its version: members are told names of their own tenants' versions alone.
    """
    found = {node.pk: {kind: list(node.drift.get(kind, ())) for kind in _DRIFTS} for node in nodes}
    names = {name for drift in found.values() for each in drift.values() for name in each}
    if sees_all_tenants(actor) or not names:
        return found
    own = Version.objects.filter(engine_name__in=names, adapter__tenant__in=list(actor.roles))
    told = set(own.values_list("engine_name", flat=True))
    return {
        key: {kind: [name for name in each if name in told] for kind, each in drift.items()}
        for key, drift in found.items()
    }


def _named(actor: Actor, nodes: Iterable[int]) -> Sequence[Residency]:
    last_first = F("last_used_at").desc(nulls_last=True)
    place = Window(RowNumber(), partition_by=[F("node_id"), F("tier")], order_by=[last_first, F("pk").asc()])
    held = _seen(actor, residencies_with_relations().filter(node__in=list(nodes), tier__in=_IN_ENGINE))
    numbered = held.annotate(place=place).filter(Q(place__lte=NAMED) | Q(tier=Tier.GPU.value, place__lte=_MOST_SLOTS))
    return list(numbered.order_by("node_id", "tier", "place"))


_MOST_SLOTS: Final = 64


def _seen(actor: Actor, held: QuerySet[Residency]) -> QuerySet[Residency]:
    return held if sees_all_tenants(actor) else held.filter(version__adapter__tenant__in=list(actor.roles))
