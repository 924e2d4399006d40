"""What gateways call."""

from datetime import timedelta

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from cachecontrol.api.answers import DemandAnswer
from cachecontrol.api.documents import demand_document
from cachecontrol.api.inputs import DemandInput
from cachecontrol.services.demand import demand_version
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.rest.views import ApiView
from registry.permissions import Action


class DemandView(ApiView):
    actions = {"post": Action.DEMAND_VERSION}
    in_steps = True

    @extend_schema(operation_id="demand_version", request=DemandInput, responses={202: DemandAnswer})
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        body = read_input(request, DemandInput)
        longest = body["deadline_ms"]
        demand = demand_version(
            actor=actor,
            version_id=body["version_id"],
            waiting=body["waiting"],
            longest=None if longest is None else timedelta(milliseconds=longest),
            in_flight=body["in_flight"],
        )
        return Response(demand_document(demand), status=202)
