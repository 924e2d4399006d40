"""Cache policies: what is in force for each base model, what was proposed, and what a proposal changes."""

from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, OuterRef, Q, Subquery
from django.http import HttpRequest, HttpResponse

from cachecontrol.models import CachePolicy
from cachecontrol.policies import (
    active_policy,
    get_base_model,
    get_cache_policy,
    in_force,
    list_cache_policies,
)
from cachecontrol.policy.diff import Change, diff
from cachecontrol.policy.document import PolicyDocument
from cachecontrol.policy.effective import PolicyInForce
from cachecontrol.policy.pinning import text_of
from cachecontrol.policy.reading import NodeLimits, Value, limits_on, values_of
from cachecontrol.selectors import list_pool_models, nodes_with_relations
from cachecontrol.states import PolicyState
from registry.models import BaseModel
from registry.permissions import Action
from registry.web.differences import Sides, beside
from registry.web.page import Page
from registry.web.paging import page_of

# Two texts that are longer than this are compared by what they mean alone.
_MOST_TEXT: Final = 20_000
_NODES: Final = 50
_REPLAY: Final = (
    "lorekeeper trace export --base-model %s -o trace.csv\n"
    "lorekeeper replay --policy policy.yaml --trace trace.csv --all-eviction-policies"
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A document beside what is in force.

    Attributes:
        number: of what is in force; 0: the built-in defaults.
        changes: values that differ.
        lines: the texts side by side; empty where they are too long.

    """

    number: int
    changes: tuple[Change, ...]
    lines: Sides


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a document comes to: all its values, and what each node may use under it."""

    values: list[Value]
    nodes: list[NodeLimits]

    @property
    def own(self) -> list[Value]:
        return [each for each in self.values if each.is_own]


def meaning_of(policy: PolicyInForce, base_model: BaseModel) -> Meaning:
    nodes = nodes_with_relations().filter(base_revision__base_model=base_model)
    return Meaning(values_of(policy.document), limits_on(policy, list(nodes.order_by("name")[:_NODES])))


def compare(document: PolicyDocument, text: str, active: PolicyInForce, active_text: str) -> Comparison:
    is_short = max(len(text), len(active_text)) <= _MOST_TEXT
    lines = beside(active_text, text) if is_short else Sides(())
    return Comparison(active.number or 0, diff(active.document, document), lines)


def text_in_force(base_model: BaseModel, active: PolicyInForce) -> str:
    """As it was proposed; of the defaults, the shortest that means them."""
    if active.number is None:
        return text_of(active.document)
    return CachePolicy.objects.values_list("text", flat=True).get(base_model=base_model, number=active.number)


class PoliciesPage(Page):
    actions = {"get": Action.VIEW_CACHE_POLICY}
    template_name = "cachecontrol/policies.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        active = CachePolicy.objects.filter(base_model=OuterRef("pk"), state=PolicyState.ACTIVE.value)
        models = list_pool_models(actor=self.actor).annotate(
            number=Subquery(active.values("number")[:1]),
            since=Subquery(active.values("activated_at")[:1]),
            proposals=Count(
                "cache_policies", filter=Q(cache_policies__state=PolicyState.PROPOSED.value), distinct=True
            ),
            nodes=Count("revisions__nodes", distinct=True),
        )
        return self.show({"rows": page_of(request, models, ordering=("name",))})


class PoolPoliciesPage(Page):
    actions = {"get": Action.VIEW_CACHE_POLICY}
    template_name = "cachecontrol/pool_policies.html"

    def get(self, request: HttpRequest, base_model: str) -> HttpResponse:
        model = get_base_model(actor=self.actor, name=base_model)
        active = active_policy(model)
        rows = page_of(request, list_cache_policies(actor=self.actor, base_model=base_model), ordering=("-number",))
        facts = {"model": model, "rows": rows, "number": active.number or 0}
        return self.show({**facts, "meaning": meaning_of(active, model)})


class PolicyPage(Page):
    actions = {"get": Action.VIEW_CACHE_POLICY}
    template_name = "cachecontrol/policy.html"

    def get(self, request: HttpRequest, base_model: str, number: int) -> HttpResponse:
        policy = get_cache_policy(actor=self.actor, base_model=base_model, number=number)
        active, document = active_policy(policy.base_model), in_force(policy)
        text = text_in_force(policy.base_model, active)
        facts: dict[str, Any] = {"policy": policy, "number": active.number or 0}
        facts["comparison"] = compare(document.document, policy.text, active, text)
        facts["commands"] = _REPLAY % policy.base_model
        facts["is_own"] = policy.proposed_by_id == self.actor.person_id
        return self.show({**facts, "meaning": meaning_of(document, policy.base_model)})
