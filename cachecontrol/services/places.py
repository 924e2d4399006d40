"""From rows to what placement, scores and quotas decide on.

Placements of one pool take turns (``lock_pool``), so that neither a place nor what a quota leaves is given away twice.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final

from django.db import connection
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from cachecontrol.engines import CAPABILITIES
from cachecontrol.models import Node, Residency
from cachecontrol.placement.facts import Readiness, Wanted
from cachecontrol.policies import active_key, policy_by_key, quota_usage
from cachecontrol.policy.effective import PolicyInForce, built_in
from cachecontrol.quotas import Bounds, Quotas, Resource
from cachecontrol.reconcile import failed_for_good, is_settled
from cachecontrol.residents import Resident
from cachecontrol.scoring.rates import add_hits, decayed, rate_per_h
from cachecontrol.services.sizes import sizes_of
from cachecontrol.states import Desired, EngineKind, NodeStatus, Observed
from registry.models import Version
from registry.states import VersionState
from releases.models import Alias, AliasRevision, AliasSplit

# Of a load that was never measured.
USUAL_LOAD_MS: Final = 500.0
_GUESS_MS: Final = {"load_ms": USUAL_LOAD_MS, "fetch_ms": 2000.0}
# What it takes to bring a version back from the next tier down: from the disk into the engine, or from the store.
_RELOAD: Final = {Desired.GPU: "load_ms", Desired.DISK: "fetch_ms"}
_WITHOUT_FILES: Final = (Observed.ABSENT.value, Observed.FETCHING.value, Observed.FAILED.value)
_WANTED: Final = Q(residencies__desired=Desired.GPU.value)
_ON_ITS_WAY: Final = _WANTED & Q(residencies__acted_generation__lt=F("residencies__generation"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A node as one version sees it that is to be loaded.

    ``has_files``: its files are on the disk; ``keeps_files``: they are wanted there, so they count as its tenant's.
    ``taken`` counts the versions wanted in its engine, ``loading`` those of them that are on their way now (not those
    whose last try failed and whose next one comes later), ``hot`` those that count as in its slots.
    """

    node: Node
    policy: PolicyInForce
    taken: int
    loading: int
    hot: int
    has_files: bool
    keeps_files: bool
    wants_it: bool

    @property
    def places(self) -> int:
        return places_on(self.node, self.policy)

    @property
    def cpu_bytes(self) -> int | None:
        """What its engine may hold in bytes; None: as much as fits its places."""
        return self.policy.cpu_bytes(self.node.memory_bytes)

    @property
    def free(self) -> int:
        return self.places - self.taken

    @property
    def may_load(self) -> bool:
        """Whether it may begin one more load now."""
        return self.loading < self.policy.document.loading.concurrent_loads_per_node


def lock_pool(digest: str) -> None:
    """Wait for this pool's turn; held until the transaction ends. After the version's lock, before any node's."""
    _lock(f"cachecontrol pool {digest}")


def lock_quotas(base_model_id: int) -> None:
    """The same for all pools of a base model, which share its quotas. After the pool's, before any node's."""
    _lock(f"cachecontrol quotas {base_model_id}")


def _lock(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def used_of(base_model_id: int, policy: PolicyInForce) -> dict[str, dict[Resource, int]] | None:
    """What each tenant holds of the base model's nodes, to be kept from changing until the transaction ends.

    None when the policy bounds nothing, since it is asked for with every load.
    """
    if not _bounds_anybody(policy.quotas):
        return None
    lock_quotas(base_model_id)
    return quota_usage(base_model_id=base_model_id)


def _bounds_anybody(quotas: Quotas) -> bool:
    known = [quotas.default, *quotas.tenants.values()]
    return any(bounds != Bounds() for quota in known for bounds in quota.bounds.values())


def wanted_of(version: Version) -> Wanted:
    return Wanted(base_digest=version.base_revision.digest, rank=version.rank or 0)


def places_on(node: Node, policy: PolicyInForce) -> int:
    """How many versions the engine may hold: its own number, the policy's, and its slots where it has no CPU tier."""
    places = policy.places(node.cpu_slots)
    return places if CAPABILITIES[EngineKind(node.engine_kind)].has_cpu_tier else min(places, node.gpu_slots)


def pool_nodes(digest: str) -> QuerySet[Node]:
    """Every node of the base revision with that digest; what that base is made of is large and of no use here."""
    found = Node.objects.select_related("base_revision__base_model").defer("base_revision__description")
    return found.filter(base_revision__digest=digest).order_by("pk")


def spots_for(version: Version, *, node: str | None = None) -> list[Spot]:
    """Every node of the version's pool, or the one that is named."""
    held = Residency.objects.filter(node=OuterRef("pk"), version=version)
    found = pool_nodes(version.base_revision.digest)
    nodes = (found if node is None else found.filter(name=node)).annotate(
        taken=Count("residencies", filter=_WANTED),
        loading=Count("residencies", filter=_ON_ITS_WAY & ~Q(residencies__retry_at__gt=timezone.now())),
        hot=Count("residencies", filter=Q(residencies__is_hot=True)),
        has_files=Exists(held.exclude(observed__in=_WITHOUT_FILES)),
        keeps_files=Exists(held.exclude(desired=Desired.ABSENT.value)),
        wants_it=Exists(held.filter(desired=Desired.GPU.value)),
        policy_key=active_key("base_revision__base_model"),
    )
    return [
        Spot(
            node=node,
            policy=_policy_read_with(node, node.policy_key),
            taken=node.taken,
            loading=node.loading,
            hot=node.hot,
            has_files=node.has_files,
            keeps_files=node.keeps_files,
            wants_it=node.wants_it,
        )
        for node in nodes
    ]


def _policy_read_with(node: Node, key: int | None) -> PolicyInForce:
    return built_in(node.base_revision.base_model.name) if key is None else policy_by_key(key)


def residents_of(
    nodes: Iterable[Node], *, half_life: timedelta, desired: Desired = Desired.GPU, keys: Collection[int] | None = None
) -> dict[int, list[Resident]]:
    """What is wanted in the engines of the nodes, or on their disks alone, by node; of ``keys`` only, if given."""
    rows = list(_resident_rows(nodes, desired, keys))
    versions = {row["version_id"] for row in rows}
    sizes, now = sizes_of(versions), timezone.now()
    measured = _RELOAD[desired]
    usual_ms = _usual(rows, measured)
    residents: defaultdict[int, list[Resident]] = defaultdict(list)
    for row in rows:
        facts = {
            "size_bytes": sizes[row["version_id"]],
            "used_at": _used_at(row),
            "reload_ms": float(row[measured] or usual_ms),
            **_rates(row, now=now, half_life=half_life),
        }
        residents[row["node_id"]].append(_resident(row, facts))
    return dict(residents)


def may_answer(node: Node) -> bool:
    """Whether gateways send requests to what it has loaded, once its engine is well."""
    return node.status == NodeStatus.UP and not (node.draining or node.poisoned or node.recycling_since is not None)


def readiness_of(node: Node) -> Readiness:
    """How soon the node can load something new."""
    if node.status != NodeStatus.UP or node.is_closed:
        return Readiness.UNUSABLE
    if not node.engine_healthy:
        return Readiness.RECOVERING
    return Readiness.TAINTED if node.tainted else Readiness.READY


def _resident_rows(
    nodes: Iterable[Node], desired: Desired, keys: Collection[int] | None
) -> Iterable[Mapping[str, Any]]:
    copies = (
        Residency.objects.filter(version=OuterRef("version_id"), desired=desired.value)
        .order_by()
        .values("version_id")
        .annotate(number=Count("pk"))
        .values("number")
    )
    found = Residency.objects.filter(node__in=[node.pk for node in nodes], desired=desired.value).order_by("pk")
    found = found if keys is None else found.filter(pk__in=keys)
    return found.values(
        "pk",
        "node_id",
        "version_id",
        "observed",
        "generation",
        "acted_generation",
        "retry_at",
        "error_class",
        "is_hot",
        "last_used_at",
        "last_demand_at",
        "state_changed_at",
        "desired",
        "load_ms",
        "fetch_ms",
        "score_clock",
        tenant=F("version__adapter__tenant__name"),
        rank=F("version__rank"),
        rate=F("version__heat__rate"),
        rate_at=F("version__heat__as_of"),
        hits=Coalesce("version__heat__hits", 0),
        version_used_at=F("version__heat__last_used_at"),
        tenant_rate=F("version__adapter__tenant__heat__rate"),
        tenant_rate_at=F("version__adapter__tenant__heat__as_of"),
        copies=Subquery(copies),
        is_yanked=Q(version__state=VersionState.YANKED.value),
        is_target=Exists(Alias.objects.filter(version=OuterRef("version_id"))) | Exists(_splits_to("version_id")),
        was_target=Exists(AliasRevision.objects.filter(previous_version=OuterRef("version_id"))),
    )


def _splits_to(version_id: str) -> QuerySet[AliasSplit]:
    """The splits that send requests to the version in that column of the outer query."""
    return AliasSplit.objects.filter(Q(candidate=OuterRef(version_id)) | Q(shadow=OuterRef(version_id)))


def _resident(row: Mapping[str, Any], facts: dict[str, Any]) -> Resident:
    desired = Desired(row["desired"])
    uses = (facts["used_at"], row["version_used_at"])
    return Resident(
        key=row["pk"],
        node_id=row["node_id"],
        version_id=row["version_id"],
        tenant=row["tenant"],
        rank=row["rank"] or 0,
        is_settled=_is_at_rest(row, desired),
        is_broken=failed_for_good(
            observed=row["observed"],
            generation=row["generation"],
            acted_generation=row["acted_generation"],
            error_class=row["error_class"],
        ),
        is_hot=row["is_hot"],
        last_used_at=max((use for use in uses if use is not None), default=None),
        hits=row["hits"],
        is_retiring=not row["is_target"] and (row["is_yanked"] or row["was_target"]),
        clock=row["score_clock"],
        **facts,
    )


def _used_at(row: Mapping[str, Any]) -> datetime | None:
    """The last sign of use on this node: an answer, a demand, or the end of its load."""
    is_there = row["observed"] in (Observed.LOADED, Observed.ON_DISK)
    here = (row["last_used_at"], row["last_demand_at"], row["state_changed_at"] if is_there else None)
    return max((use for use in here if use is not None), default=None)


def _is_at_rest(row: Mapping[str, Any], desired: Desired) -> bool:
    """Whether no load is on its way now; one that failed is not until its next try."""
    if row["observed"] == Observed.FAILED and row["retry_at"] is not None and row["retry_at"] > timezone.now():
        return True
    return is_settled(
        desired=desired,
        observed=Observed(row["observed"]),
        generation=row["generation"],
        acted_generation=row["acted_generation"],
    )


def _usual(rows: Iterable[Mapping[str, Any]], measured: str) -> float:
    """What counts for those never measured: a guess far from what the others take would decide alone who leaves."""
    known = [row[measured] for row in rows if row[measured]]
    return float(median(known)) if known else _GUESS_MS[measured]


def _rates(row: Mapping[str, Any], *, now: datetime, half_life: timedelta) -> dict[str, float]:
    """The rates as counted, with one request more of the version where a demand is newer than all that was counted.

    Records come seconds after their requests: what was just loaded would else seem to be wanted by nobody.
    """
    asked_at, counted_to = row["last_demand_at"], row["version_used_at"]
    is_ahead = asked_at is not None and (counted_to is None or asked_at > counted_to)
    ahead = asked_at if is_ahead else None
    return {
        "rate_per_h": _rate(row["rate"], row["rate_at"], now, half_life, ahead) / (row["copies"] or 1),
        "tenant_rate_per_h": _rate(row["tenant_rate"], row["tenant_rate_at"], now, half_life),
    }


def _rate(
    count: float | None, as_of: datetime | None, now: datetime, half_life: timedelta, ahead: datetime | None = None
) -> float:
    if count is None or as_of is None:
        if ahead is None:
            return 0.0
        count, as_of = 1.0, ahead
    elif ahead is not None:
        count, as_of = add_hits(count, as_of=as_of, hits=1, at=ahead, half_life=half_life)
    return rate_per_h(decayed(count, as_of=as_of, now=now, half_life=half_life), half_life=half_life)
