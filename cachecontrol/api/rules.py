"""What a tenant may ask of the gateway."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cachecontrol.selectors import serving_rules_of
from cachecontrol.services.rules import MOST, set_serving_rules, shown
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.rest.etags import answer, names_state, require_match
from registry.api.rest.views import ApiView
from registry.permissions import Action
from registry.selectors import get_tenant

_MAX_NAME = 63
_MAX_MODELS = 100


def _limit(help_text: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=MOST, help_text=help_text
    )


class ServingRulesShape(serializers.Serializer[Any]):
    requests_per_minute = _limit("Null: no limit.")
    tokens_per_minute = _limit("Of prompts and answers together; null: no limit.")
    concurrent_requests = _limit("Under way at once; null: no limit.")
    gpu_ms_per_minute = _limit("Time that its requests spend in engines, in milliseconds; null: no limit.")
    base_models = serializers.ListField(
        child=serializers.CharField(max_length=_MAX_NAME),
        required=False,
        default=list,
        max_length=_MAX_MODELS,
        help_text="Base models that it may ask for by their own names.",
    )
    allows_shadow = serializers.BooleanField(
        required=False, default=True, help_text="Whether its requests may be mirrored to a candidate."
    )


class ServingRulesView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "put": Action.MANAGE_TENANT}

    @extend_schema(operation_id="get_serving_rules", responses={200: ServingRulesShape})
    def get(self, request: Request, tenant: str) -> Response:
        owner = get_tenant(actor=actor_of(request), name=tenant)
        return answer(shown(serving_rules_of(owner)), request)

    @extend_schema(operation_id="set_serving_rules", request=ServingRulesShape, responses={200: ServingRulesShape})
    def put(self, request: Request, tenant: str) -> Response:
        actor = actor_of(request)
        owner = get_tenant(actor=actor, name=tenant, action=Action.MANAGE_TENANT)
        body = read_input(request, ServingRulesShape)
        seen = serving_rules_of(owner)
        require_match(request, shown(seen))
        expected = seen if names_state(request) else None
        return answer(shown(set_serving_rules(actor=actor, tenant=owner, expected=expected, **body)), request)
