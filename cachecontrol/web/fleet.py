"""The fleet on one page, and each node on one of its own."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from cachecontrol.engines import CAPABILITIES
from cachecontrol.explanations import list_evictions
from cachecontrol.fleet import (
    STANDINGS,
    NodeTiers,
    count_fleet,
    drift_seen,
    list_loads,
    list_on_node,
    list_pool_nodes,
    read_tiers,
)
from cachecontrol.models import Node
from cachecontrol.selectors import find_node
from cachecontrol.states import EngineKind, Tier
from cachecontrol.web.standing import Mark, marks_of
from cachecontrol.web.words import WORDS
from registry.models import BaseModelRevision
from registry.permissions import Action, sees_all_tenants
from registry.web.page import Page
from registry.web.paging import page_of

_NODES: Final = 20
_LOADS: Final = 20
_SHOWN: Final = 8
_ORDER: Final = ("base_revision__base_model__name", "base_revision__label", "name")


@dataclass(frozen=True)
class NodeRow:
    """A node with what is on it."""

    node: Node
    tiers: NodeTiers
    marks: list[Mark] = field(default_factory=list)

    @property
    def free_slots(self) -> int:
        return max(0, self.node.gpu_slots - self.tiers.gpu)

    @property
    def unnamed_slots(self) -> int:
        return self.tiers.gpu - len(self.tiers.slots)

    @property
    def unnamed_memory(self) -> int:
        return self.tiers.cpu - len(self.tiers.memory)

    @cached_property
    def is_changing(self) -> bool:
        """Whether something is in progress there, so that it is worth looking again."""
        leaves = self.node.draining and (self.tiers.gpu or self.tiers.cpu or self.tiers.disk)
        return bool(self.tiers.in_work or self.node.recycling_since or leaves)


@dataclass(frozen=True, slots=True)
class Pool:
    """The nodes of one base revision that the page shows."""

    revision: BaseModelRevision
    rows: list[NodeRow]


class FleetFilters(forms.Form):
    text = forms.CharField(label=_("Node or base model"), max_length=63, required=False)
    standing = forms.ChoiceField(
        label=_("How it is"),
        required=False,
        choices=[("", _("any")), *((name, WORDS[name]) for name in STANDINGS)],
    )


class FleetPage(Page):
    actions = {"get": Action.VIEW_PLATFORM}
    template_name = "cachecontrol/fleet.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        filters = FleetFilters(request.GET)
        asked = filters.cleaned_data if filters.is_valid() else {}
        nodes = page_of(request, list_pool_nodes(actor=self.actor, **asked), ordering=_ORDER, size=_NODES)
        tiers = read_tiers(actor=self.actor, nodes=nodes.rows)
        rows = [NodeRow(node, tiers[node.pk], marks_of(node)) for node in nodes]
        loads = list_loads(actor=self.actor, most=_LOADS)
        facts = {"pools": list(_pools(rows)), "nodes": nodes, "filters": filters, "is_filtered": any(asked.values())}
        facts |= {"loads": loads[:_LOADS], "has_more_loads": len(loads) > _LOADS}
        facts |= {"count": count_fleet(actor=self.actor), "sees_all": sees_all_tenants(self.actor)}
        return self.show({**facts, "is_changing": bool(loads) or any(row.is_changing for row in rows)})


def _pools(rows: list[NodeRow]) -> Iterator[Pool]:
    for _key, group in groupby(rows, key=lambda row: row.node.base_revision_id):
        found = list(group)
        yield Pool(found[0].node.base_revision, found)


class NodePage(Page):
    actions = {"get": Action.VIEW_PLATFORM}
    template_name = "cachecontrol/node.html"

    def get(self, request: HttpRequest, node: str) -> HttpResponse:
        found = find_node(name=node)
        row = NodeRow(found, read_tiers(actor=self.actor, nodes=[found])[found.pk], marks_of(found))
        tier = request.GET.get("tier", "")
        held = page_of(request, list_on_node(actor=self.actor, node=found, tier=tier), ordering=("pk",))
        facts = {"row": row, "node": found, "tier": tier, "held": held, "tiers": ["", *Tier, "moving"]}
        facts |= {
            "drift": drift_seen(actor=self.actor, nodes=[found])[found.pk],
            "sees_all": sees_all_tenants(self.actor),
        }
        facts |= {"loads": list_loads(actor=self.actor, most=_LOADS, node=found)[:_LOADS]}
        facts |= {"evictions": list_evictions(actor=self.actor).filter(node=found).order_by("-at", "-pk")[:_SHOWN]}
        return self.show({**facts, "capabilities": CAPABILITIES[EngineKind(found.engine_kind)]})
