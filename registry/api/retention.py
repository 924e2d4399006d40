"""How long an adapter keeps the bytes of its versions: the policy, what it would remove, and the removal."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.documents import Document
from registry.api.rest.etags import answer, names_state, require_match
from registry.api.rest.views import ApiView
from registry.models import RetentionPolicy
from registry.permissions import Action
from registry.retention import Keep
from registry.selectors import get_adapter, get_retention
from registry.services.retention import (
    MAX_KEEP_DAYS,
    RetentionPlan,
    apply_retention,
    plan_retention,
    set_retention,
)


class RetentionInput(serializers.Serializer[Any]):
    keep_days = serializers.IntegerField(
        min_value=1, max_value=MAX_KEEP_DAYS, help_text="How long bytes are kept after they were last of use."
    )
    automatic = serializers.BooleanField(
        required=False, default=False, help_text="Apply it daily; only after it was applied once by hand."
    )


class RetentionAnswer(RetentionInput):
    applied_at = serializers.DateTimeField(allow_null=True, help_text="When `keep_days` was last applied by hand.")


class PlanInput(serializers.Serializer[Any]):
    digest = serializers.CharField(max_length=64, help_text="`digest` of the plan that was looked at.")


class PlanEntryAnswer(serializers.Serializer[Any]):
    version = serializers.CharField()
    state = serializers.CharField()
    keep = serializers.ChoiceField(
        choices=[keep.value for keep in Keep], allow_null=True, help_text="Why it is kept; null: its bytes go."
    )


class PlanAnswer(serializers.Serializer[Any]):
    keep_days = serializers.IntegerField()
    digest = serializers.CharField(help_text="Names what goes; applying the plan takes it.")
    bytes = serializers.IntegerField(help_text="What is freed.")
    removed = serializers.IntegerField(help_text="How many versions lose their bytes.")
    versions = PlanEntryAnswer(many=True)


class RetentionView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "put": Action.MANAGE_TENANT}

    @extend_schema(operation_id="get_retention", responses={200: RetentionAnswer})
    def get(self, request: Request, tenant: str, adapter: str) -> Response:
        policy = get_retention(actor=actor_of(request), tenant=tenant, adapter=adapter)
        return answer(retention_document(policy), request)

    @extend_schema(operation_id="set_retention", request=RetentionInput, responses={200: RetentionAnswer})
    def put(self, request: Request, tenant: str, adapter: str) -> Response:
        actor = actor_of(request)
        line = get_adapter(actor=actor, tenant=tenant, name=adapter, action=Action.MANAGE_TENANT)
        body = read_input(request, RetentionInput)
        seen = RetentionPolicy.objects.filter(adapter=line).first()
        require_match(request, None if seen is None else retention_document(seen))
        expected = seen if names_state(request) else None
        policy = set_retention(actor=actor, adapter=line, expected=expected, **body)
        return answer(retention_document(policy), request)


class RetentionPlanView(ApiView):
    """What the policy would remove now; removes nothing."""

    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="get_retention_plan", responses={200: PlanAnswer})
    def get(self, request: Request, tenant: str, adapter: str) -> Response:
        policy = get_retention(actor=actor_of(request), tenant=tenant, adapter=adapter)
        return answer(plan_document(plan_retention(policy=policy)), request)


class RetentionApplyView(ApiView):
    actions = {"post": Action.MANAGE_TENANT}
    in_steps = True

    @extend_schema(operation_id="apply_retention", request=PlanInput, responses={200: PlanAnswer})
    def post(self, request: Request, tenant: str, adapter: str) -> Response:
        actor = actor_of(request)
        line = get_adapter(actor=actor, tenant=tenant, name=adapter, action=Action.MANAGE_TENANT)
        plan = apply_retention(actor=actor, adapter=line, **read_input(request, PlanInput))
        return Response(plan_document(plan))


def retention_document(policy: RetentionPolicy) -> Document:
    return {"keep_days": policy.keep_days, "automatic": policy.automatic, "applied_at": policy.applied_at}


def plan_document(plan: RetentionPlan) -> Document:
    return {
        "keep_days": plan.keep_days,
        "digest": plan.digest,
        "bytes": plan.size,
        "removed": len(plan.removed),
        "versions": [
            {
                "version": entry.version.name,
                "state": entry.version.state,
                "keep": None if entry.keep is None else entry.keep.value,
            }
            for entry in plan.entries
        ],
    }
