"""Cache policies and quotas."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cachecontrol.api.answers import (
    CachePolicyAnswer,
    CacheQuotaAnswer,
    PolicyDiffAnswer,
    PolicyInForceAnswer,
    WholeCachePolicyAnswer,
)
from cachecontrol.models import CachePolicy
from cachecontrol.policies import (
    TenantUsage,
    active_policy,
    get_base_model,
    get_cache_policy,
    in_force,
    list_cache_policies,
    usage_of_everybody,
    usage_of_tenant,
)
from cachecontrol.policy.diff import diff
from cachecontrol.policy.effective import PolicyInForce, built_in
from cachecontrol.quotas import Resource
from cachecontrol.services.policies import (
    DEFAULTS,
    approve_policy,
    decline_policy,
    propose_policy,
    roll_back_policy,
)
from cachecontrol.states import PolicyState
from registry.actors import Actor
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.documents import Document
from registry.api.rest.etags import answer
from registry.api.rest.filters import read_filters
from registry.api.rest.pagination import page, whole
from registry.api.rest.schema import listed, listed_whole
from registry.api.rest.views import ApiView
from registry.documents.read import MAX_CHARACTERS
from registry.permissions import Action
from registry.selectors import get_tenant

_MOST = 2**31 - 1
_MAX_TEXT = 4000


class ProposalInput(serializers.Serializer[Any]):
    text = serializers.CharField(
        max_length=MAX_CHARACTERS, trim_whitespace=False, help_text="The policy as YAML; see docs/cache-policies.md."
    )
    comment = serializers.CharField(required=False, allow_blank=True, default="", max_length=_MAX_TEXT)


class PolicyApprovalInput(serializers.Serializer[Any]):
    digest = serializers.CharField(max_length=64, help_text="`digest` of the policy that was looked at.")
    against = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=DEFAULTS,
        max_value=_MOST,
        help_text="`in_force` when it was looked at; refused if something else is in force by now.",
    )
    reason = serializers.CharField(required=False, allow_blank=True, default="", max_length=_MAX_TEXT)


class PolicyRefusalInput(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=_MAX_TEXT)


class PolicyRollbackInput(serializers.Serializer[Any]):
    to = serializers.IntegerField(
        min_value=DEFAULTS, max_value=_MOST, help_text="The number of one approved earlier; 0: the built-in defaults."
    )
    reason = serializers.CharField(required=False, allow_blank=True, default="", max_length=_MAX_TEXT)


class PolicyFilters(serializers.Serializer[Any]):
    state = serializers.ChoiceField(required=False, choices=[state.value for state in PolicyState])


class DiffFilters(serializers.Serializer[Any]):
    against = serializers.IntegerField(
        required=False,
        min_value=DEFAULTS,
        max_value=_MOST,
        help_text="The number to compare with; 0: the built-in defaults; without it what is in force.",
    )


class CachePoliciesView(ApiView):
    actions = {"get": Action.VIEW_CACHE_POLICY, "post": Action.MANAGE_PLATFORM}

    @extend_schema(
        operation_id="list_cache_policies", parameters=[PolicyFilters], responses={200: listed(CachePolicyAnswer)}
    )
    def get(self, request: Request, base_model: str) -> Response:
        policies = list_cache_policies(actor=actor_of(request), base_model=base_model)
        wanted = policies.filter(**read_filters(request, PolicyFilters))
        return page(request, wanted, ordering=("-number",), document=policy_document)

    @extend_schema(operation_id="propose_cache_policy", request=ProposalInput, responses={201: WholeCachePolicyAnswer})
    def post(self, request: Request, base_model: str) -> Response:
        actor = actor_of(request)
        found = get_base_model(actor=actor, name=base_model, action=Action.MANAGE_PLATFORM)
        policy = propose_policy(actor=actor, base_model=found, **read_input(request, ProposalInput))
        return answer(whole_policy_document(policy), request, status=201)


class CachePolicyView(ApiView):
    actions = {"get": Action.VIEW_CACHE_POLICY}

    @extend_schema(operation_id="get_cache_policy", responses={200: WholeCachePolicyAnswer})
    def get(self, request: Request, base_model: str, number: int) -> Response:
        policy = get_cache_policy(actor=actor_of(request), base_model=base_model, number=number)
        return answer(whole_policy_document(policy), request)


class CachePolicyDiffView(ApiView):
    actions = {"get": Action.VIEW_CACHE_POLICY}

    @extend_schema(operation_id="diff_cache_policy", parameters=[DiffFilters], responses={200: PolicyDiffAnswer})
    def get(self, request: Request, base_model: str, number: int) -> Response:
        actor = actor_of(request)
        policy = get_cache_policy(actor=actor, base_model=base_model, number=number)
        against = read_filters(request, DiffFilters).get("against")
        return answer(diff_document(policy, _compared(actor, policy, against)), request)


class ApprovePolicyView(ApiView):
    actions = {"post": Action.MANAGE_PLATFORM}

    @extend_schema(
        operation_id="approve_cache_policy", request=PolicyApprovalInput, responses={200: WholeCachePolicyAnswer}
    )
    def post(self, request: Request, base_model: str, number: int) -> Response:
        actor = actor_of(request)
        policy = _decided(actor, base_model, number)
        approved = approve_policy(actor=actor, policy=policy, **read_input(request, PolicyApprovalInput))
        return answer(whole_policy_document(approved), request)


class DeclinePolicyView(ApiView):
    actions = {"post": Action.MANAGE_PLATFORM}

    @extend_schema(
        operation_id="decline_cache_policy", request=PolicyRefusalInput, responses={200: WholeCachePolicyAnswer}
    )
    def post(self, request: Request, base_model: str, number: int) -> Response:
        actor = actor_of(request)
        policy = _decided(actor, base_model, number)
        declined = decline_policy(actor=actor, policy=policy, **read_input(request, PolicyRefusalInput))
        return answer(whole_policy_document(declined), request)


class PolicyInForceView(ApiView):
    actions = {"get": Action.VIEW_CACHE_POLICY}

    @extend_schema(operation_id="get_cache_policy_in_force", responses={200: PolicyInForceAnswer})
    def get(self, request: Request, base_model: str) -> Response:
        found = get_base_model(actor=actor_of(request), name=base_model)
        return answer(in_force_document(active_policy(found.pk)), request)


class RollBackPolicyView(ApiView):
    actions = {"post": Action.MANAGE_PLATFORM}

    @extend_schema(
        operation_id="roll_back_cache_policy", request=PolicyRollbackInput, responses={200: PolicyInForceAnswer}
    )
    def post(self, request: Request, base_model: str) -> Response:
        actor = actor_of(request)
        found = get_base_model(actor=actor, name=base_model, action=Action.MANAGE_PLATFORM)
        roll_back_policy(actor=actor, base_model=found, **read_input(request, PolicyRollbackInput))
        return answer(in_force_document(active_policy(found.pk)), request)


class CacheQuotasView(ApiView):
    actions = {"get": Action.VIEW_CACHE_POLICY}

    @extend_schema(operation_id="list_cache_quotas", responses={200: listed_whole(CacheQuotaAnswer)})
    def get(self, request: Request, base_model: str) -> Response:
        found = usage_of_everybody(actor=actor_of(request), base_model=base_model)
        return whole([quota_document(usage) for usage in found])


class TenantQuotaView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="list_tenant_cache_quotas", responses={200: listed_whole(CacheQuotaAnswer)})
    def get(self, request: Request, tenant: str) -> Response:
        owner = get_tenant(actor=actor_of(request), name=tenant)
        return whole([quota_document(usage) for usage in usage_of_tenant(tenant=owner)])


def policy_document(policy: CachePolicy) -> Document:
    return {
        "base_model": policy.base_model.name,
        "number": policy.number,
        "state": policy.state,
        "digest": policy.digest,
        "comment": policy.comment,
        "proposed_by": policy.proposed_by.email,
        "proposed_at": policy.proposed_at,
        "decided_by": policy.decided_by.email if policy.decided_by else None,
        "decided_at": policy.decided_at,
        "reason": policy.reason,
        "activated_at": policy.activated_at,
    }


def whole_policy_document(policy: CachePolicy) -> Document:
    """With what is in force now, since that is what a proposal is compared with."""
    return {
        **policy_document(policy),
        "text": policy.text,
        "document": policy.document,
        "in_force": active_policy(policy.base_model_id).number or DEFAULTS,
    }


def in_force_document(policy: PolicyInForce) -> Document:
    return {
        "base_model": policy.document.base_model,
        "number": policy.number or DEFAULTS,
        "document": policy.document.model_dump(mode="json"),
    }


def diff_document(policy: CachePolicy, against: PolicyInForce) -> Document:
    changes = diff(against.document, in_force(policy).document)
    return {
        "base_model": policy.base_model.name,
        "before": against.number or DEFAULTS,
        "after": policy.number,
        "changes": [{"path": each.path, "before": each.before, "after": each.after} for each in changes],
    }


def quota_document(usage: TenantUsage) -> Document:
    policy = usage.policy
    return {
        "base_model": policy.document.base_model,
        "tenant": usage.tenant,
        "sla": policy.document.sla_name_of(usage.tenant),
        "priority_weight": policy.weight_of(usage.tenant),
        "wait_s": policy.wait_s_of(usage.tenant),
        **{resource.value: _amount_document(usage, resource) for resource in Resource},
        "loads_per_minute": {"limit": policy.loads_per_minute_of(usage.tenant), "used": usage.loads},
        "queue_places": {"limit": policy.queue_places_of(usage.tenant), "used": usage.queued},
    }


def _amount_document(usage: TenantUsage, resource: Resource) -> Document:
    bounds = usage.quota.of(resource)
    return {"floor": bounds.floor, "ceiling": bounds.ceiling, "used": usage.used[resource]}


def _decided(actor: Actor, base_model: str, number: int) -> CachePolicy:
    return get_cache_policy(actor=actor, base_model=base_model, number=number, action=Action.MANAGE_PLATFORM)


def _compared(actor: Actor, policy: CachePolicy, against: int | None) -> PolicyInForce:
    if against is None:
        return active_policy(policy.base_model_id)
    if against == DEFAULTS:
        return built_in(policy.base_model.name)
    return in_force(get_cache_policy(actor=actor, base_model=policy.base_model.name, number=against))
