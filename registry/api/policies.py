"""A tenant's approval policy."""

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
from registry.models import ApprovalPolicy
from registry.permissions import Action
from registry.quorum import APPROVER_ROLES
from registry.reviews import policy_of
from registry.selectors import get_tenant
from registry.services.review.policies import MAX_DAYS, MAX_REQUIRED, set_approval_policy
from registry.states import Role

_ROLES = sorted(role.value for role in APPROVER_ROLES)
_MAX_PEOPLE = 100


class ApprovalPolicyShape(serializers.Serializer[Any]):
    required = serializers.IntegerField(  # type: ignore[assignment]  # not the attribute that every field has
        min_value=1, max_value=MAX_REQUIRED, help_text="How many different people have to approve."
    )
    roles = serializers.ListField(
        child=serializers.ChoiceField(choices=_ROLES), allow_empty=False, help_text="Whoever has one of these may."
    )
    only_people = serializers.ListField(
        child=serializers.EmailField(),
        required=False,
        default=list,
        max_length=_MAX_PEOPLE,
        help_text="If not empty, only these of them may.",
    )
    required_people = serializers.ListField(
        child=serializers.EmailField(),
        required=False,
        default=list,
        max_length=_MAX_PEOPLE,
        help_text="Each of these has to be among those who approve.",
    )
    validity_days = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=MAX_DAYS,
        help_text="How long an approval counts; null for ever.",
    )


class ApprovalPolicyView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "put": Action.MANAGE_TENANT}

    @extend_schema(operation_id="get_approval_policy", responses={200: ApprovalPolicyShape})
    def get(self, request: Request, tenant: str) -> Response:
        owner = get_tenant(actor=actor_of(request), name=tenant)
        return answer(approval_policy_document(policy_of(owner)), request)

    @extend_schema(
        operation_id="set_approval_policy", request=ApprovalPolicyShape, responses={200: ApprovalPolicyShape}
    )
    def put(self, request: Request, tenant: str) -> Response:
        actor = actor_of(request)
        owner = get_tenant(actor=actor, name=tenant, action=Action.MANAGE_TENANT)
        body = read_input(request, ApprovalPolicyShape)
        body["roles"] = [Role(role) for role in body["roles"]]
        seen = policy_of(owner)
        require_match(request, approval_policy_document(seen))
        expected = seen if names_state(request) else None
        return answer(
            approval_policy_document(set_approval_policy(actor=actor, tenant=owner, expected=expected, **body)), request
        )


def approval_policy_document(policy: ApprovalPolicy) -> Document:
    return {
        "required": policy.required,
        "roles": list(policy.roles),
        "only_people": list(policy.only_people),
        "required_people": list(policy.required_people),
        "validity_days": policy.validity_days,
    }
