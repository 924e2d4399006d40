"""What node agents and gateways call, each with its own kind of token."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from cachecontrol.api.answers import DemandAnswer, RecordedAnswer, ReportedAnswer
from cachecontrol.api.inputs import DemandInput, OutcomeInput, ReportInput
from cachecontrol.services.demand import demand_version
from cachecontrol.services.reports import CommandOutcome, NodeReport, record_outcome, record_report
from cachecontrol.states import ErrorClass, Outcome
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.rest.views import ApiView
from registry.permissions import Action


class ReportView(ApiView):
    actions = {"post": Action.REPORT_NODE}

    @extend_schema(operation_id="report_node", request=ReportInput, responses={200: ReportedAnswer})
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        body = read_input(request, ReportInput)
        report = NodeReport(
            boot_id=body["boot_id"],
            engine_healthy=body["engine_healthy"],
            loaded=frozenset(entry["name"] for entry in body["loaded"]),
            on_disk=frozenset(body["on_disk"]),
        )
        return Response({"ok": True, "unknown": record_report(actor=actor, report=report)})


class OutcomeView(ApiView):
    actions = {"post": Action.REPORT_NODE}

    @extend_schema(operation_id="report_outcome", request=OutcomeInput, responses={200: RecordedAnswer})
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        body = read_input(request, OutcomeInput)
        outcome = CommandOutcome(
            engine_name=body["engine_name"],
            generation=body["generation"],
            outcome=Outcome(body["outcome"]),
            message=body["message"] or "",
            error_class=ErrorClass(body["error_class"]) if body["error_class"] else None,
            timings_ms=body["timings_ms"],
        )
        record_outcome(actor=actor, outcome=outcome)
        return Response({"ok": True})


class DemandView(ApiView):
    actions = {"post": Action.DEMAND_VERSION}

    @extend_schema(operation_id="demand_version", request=DemandInput, responses={202: DemandAnswer})
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        demand = demand_version(actor=actor, version_id=read_input(request, DemandInput)["version_id"])
        return Response({"state": demand.state.value, "message": demand.message}, status=202)
