"""What node agents call, each with its node's token."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from cachecontrol.api.answers import RecordedAnswer, ReportedAnswer
from cachecontrol.api.inputs import OutcomeInput, ReportInput
from cachecontrol.drift import NodeReport
from cachecontrol.services.outcomes import CommandOutcome, record_outcome
from cachecontrol.services.reports import record_report
from cachecontrol.states import ErrorClass, Outcome, Tier
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.rest.views import ApiView
from registry.permissions import Action


class ReportView(ApiView):
    actions = {"post": Action.REPORT_NODE}

    @extend_schema(operation_id="report_node", request=ReportInput, responses={200: ReportedAnswer})
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        answer = record_report(actor=actor, report=_report(read_input(request, ReportInput)))
        return Response({"ok": True, **asdict(answer)})


class OutcomeView(ApiView):
    actions = {"post": Action.REPORT_NODE}

    @extend_schema(operation_id="report_outcome", request=OutcomeInput, responses={200: RecordedAnswer})
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        record_outcome(actor=actor, outcome=_outcome(read_input(request, OutcomeInput)))
        return Response({"ok": True})


def _outcome(body: dict[str, Any]) -> CommandOutcome:
    return CommandOutcome(
        engine_name=body["engine_name"],
        generation=body["generation"],
        outcome=Outcome(body["outcome"]),
        message=body["message"] or "",
        error_class=ErrorClass(body["error_class"]) if body["error_class"] else None,
        code=body["code"],
        timings_ms=body["timings_ms"],
        fetched_bytes=body["fetched_bytes"],
        boot_id=body.get("boot_id") or "",
    )


def _report(body: dict[str, Any]) -> NodeReport:
    tiers, disk = body["tiers"], body["disk"] or {}
    return NodeReport(
        boot_id=body["boot_id"],
        engine_healthy=body["engine_healthy"],
        loaded=frozenset(entry["name"] for entry in body.get("loaded", ())),
        on_disk=frozenset(body.get("on_disk", ())),
        mismatched=frozenset(body["mismatched"]),
        dropped={entry["name"]: entry["reason"] for entry in body["dropped"]},
        tiers=None if tiers is None else {name: Tier(tier) for name, tier in tiers.items()},
        unchanged=body["unchanged"],
        tainted=body["tainted"],
        poisoned=body["poisoned"],
        restartable=body["restartable"],
        disk_used_bytes=disk.get("used_bytes"),
        disk_free_bytes=disk.get("free_bytes"),
        sent_at=body.get("sent_at"),
    )
