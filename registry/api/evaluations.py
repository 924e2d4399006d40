"""What a tenant's versions are evaluated on, the gates they keep to, and validating again."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.documents import Document
from registry.api.rest.etags import answer, require_match
from registry.api.rest.pagination import page
from registry.api.rest.schema import listed
from registry.api.rest.views import ApiView
from registry.errors import NotFound
from registry.evaluation import (
    MAX_BOUND,
    MAX_EXAMPLES,
    MAX_PATTERN,
    MAX_PROMPT,
    MAX_REFERENCE,
    Gates,
    examples_json,
    parse_examples,
)
from registry.models import EvaluationSet, Revalidation, ValidationReport
from registry.permissions import Action
from registry.selectors import (
    get_evaluation_gates,
    get_evaluation_set,
    get_tenant,
    get_version,
    list_evaluation_sets,
    list_reports,
    list_revalidations,
)
from registry.services.evaluations import keep_evaluation_set, remove_evaluation_set, set_evaluation_gates
from registry.services.validation import request_revalidation


class ExampleShape(serializers.Serializer[Any]):
    prompt = serializers.CharField(max_length=MAX_PROMPT, trim_whitespace=False)
    reference = serializers.CharField(
        required=False,
        allow_null=True,
        max_length=MAX_REFERENCE,
        trim_whitespace=False,
        help_text="The answer that is wanted.",
    )
    forbidden = serializers.CharField(
        required=False,
        allow_null=True,
        max_length=MAX_PATTERN,
        trim_whitespace=False,
        help_text="A regular expression of Python that no answer may match; no repeated groups, no look-around.",
    )


class EvaluationSetInput(serializers.Serializer[Any]):
    examples = serializers.ListField(child=ExampleShape(), allow_empty=False, max_length=MAX_EXAMPLES)
    adapter = serializers.CharField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Whose versions are asked these; null: those of every adapter that has no set of its own.",
    )


class EvaluationSetSummary(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    name = serializers.CharField()
    adapter = serializers.CharField(allow_null=True)
    count = serializers.IntegerField(help_text="How many examples it has.")
    digest = serializers.CharField(help_text="SHA-256 of the examples' canonical JSON.")
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()


class EvaluationSetAnswer(EvaluationSetSummary):
    examples = ExampleShape(many=True)


def _share(what: str) -> serializers.FloatField:
    return serializers.FloatField(
        required=False, allow_null=True, default=None, min_value=0, max_value=1, help_text=f"{what}, 0 to 1."
    )


def _bound(what: str) -> serializers.FloatField:
    return serializers.FloatField(
        required=False, allow_null=True, default=None, min_value=0, max_value=MAX_BOUND, help_text=f"{what}."
    )


class GatesShape(serializers.Serializer[Any]):
    enforcement = serializers.ChoiceField(
        choices=["reject", "warn"], required=False, default="reject", help_text="What a gate does that is not kept."
    )
    max_perplexity = _bound("Of the references")
    min_exact_agreement = _share("Share of answers that equal their reference")
    min_token_agreement = _share("Share of the references' tokens that are the most likely ones")
    max_forbidden_hits = _bound("Number of answers that match their forbidden pattern")
    max_mean_kl = _bound("Divergence from the base, in nats a token")
    max_perplexity_increase = _bound("Against the version served now, as a share of its perplexity")
    max_exact_agreement_drop = _share("Against the version served now")
    max_token_agreement_drop = _share("Against the version served now")
    max_forbidden_hits_increase = _bound("Against the version served now")
    max_mean_kl_increase = _bound("Against the version served now, in nats a token")


class ReportSummary(serializers.Serializer[Any]):
    verdict = serializers.ChoiceField(choices=["accept", "warn", "reject"])
    policy_version = serializers.CharField()
    digest = serializers.CharField()
    created_at = serializers.DateTimeField()
    is_decisive = serializers.BooleanField(help_text="The version stands on this report.")


class WholeReport(ReportSummary):
    report = serializers.DictField(help_text="Every check with verdict, message and evidence, and the facts.")
    reference = serializers.DictField(
        allow_null=True, help_text="How base and adapter read a fixed text, as nodes compare it."
    )


class RevalidationInput(serializers.Serializer[Any]):
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=4000)


class RevalidationAnswer(serializers.Serializer[Any]):
    requested_by = serializers.CharField()
    requested_at = serializers.DateTimeField()
    reason = serializers.CharField()
    finished_at = serializers.DateTimeField(allow_null=True)
    report = serializers.CharField(allow_null=True, help_text="Digest of the report that came of it.")


class EvaluationSetsView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="list_evaluation_sets", responses={200: listed(EvaluationSetSummary)})
    def get(self, request: Request, tenant: str) -> Response:
        sets = list_evaluation_sets(actor=actor_of(request), tenant=tenant)
        return page(request, sets, document=evaluation_set_summary)


class EvaluationSetView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "put": Action.MANAGE_EVALUATION, "delete": Action.MANAGE_EVALUATION}

    @extend_schema(operation_id="get_evaluation_set", responses={200: EvaluationSetAnswer})
    def get(self, request: Request, tenant: str, name: str) -> Response:
        found = get_evaluation_set(actor=actor_of(request), tenant=tenant, name=name)
        return answer(evaluation_set_document(found), request)

    @extend_schema(operation_id="keep_evaluation_set", request=EvaluationSetInput, responses={200: EvaluationSetAnswer})
    def put(self, request: Request, tenant: str, name: str) -> Response:
        actor = actor_of(request)
        owner = get_tenant(actor=actor, name=tenant, action=Action.MANAGE_EVALUATION)
        body = read_input(request, EvaluationSetInput)
        kept = keep_evaluation_set(
            actor=actor, tenant=owner, name=name, **body, unchanged=lambda found: _require_same(request, found)
        )
        return answer(evaluation_set_document(kept), request)

    @extend_schema(operation_id="remove_evaluation_set", request=None, responses={204: None})
    def delete(self, request: Request, tenant: str, name: str) -> Response:
        actor = actor_of(request)
        owner = get_tenant(actor=actor, name=tenant, action=Action.MANAGE_EVALUATION)
        remove_evaluation_set(
            actor=actor, tenant=owner, name=name, unchanged=lambda found: _require_same(request, found)
        )
        return Response(status=204)


class EvaluationGatesView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "put": Action.MANAGE_EVALUATION}

    @extend_schema(operation_id="get_evaluation_gates", responses={200: GatesShape})
    def get(self, request: Request, tenant: str) -> Response:
        return answer(get_evaluation_gates(actor=actor_of(request), tenant=tenant).to_json(), request)

    @extend_schema(operation_id="set_evaluation_gates", request=GatesShape, responses={200: GatesShape})
    def put(self, request: Request, tenant: str) -> Response:
        actor = actor_of(request)
        owner = get_tenant(actor=actor, name=tenant, action=Action.MANAGE_EVALUATION)
        gates = read_input(request, GatesShape)

        def unchanged(found: Gates) -> None:
            require_match(request, found.to_json())

        kept = set_evaluation_gates(actor=actor, tenant=owner, gates=gates, unchanged=unchanged)
        return answer(kept.to_json(), request)


class ReportsView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="list_reports", responses={200: listed(ReportSummary)})
    def get(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        reports = list_reports(actor=actor_of(request), tenant=tenant, adapter=adapter, version=version)
        return page(request, reports, document=report_summary)


class WholeReportView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="get_whole_report", responses={200: WholeReport})
    def get(self, request: Request, tenant: str, adapter: str, version: str, digest: str) -> Response:
        reports = list_reports(actor=actor_of(request), tenant=tenant, adapter=adapter, version=version)
        found = reports.defer(None).filter(digest=digest).first()
        if found is None:
            raise NotFound(_("This version has no report with this digest."), field="digest")
        return Response(report_document(found))


class RevalidationsView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="list_revalidations", responses={200: listed(RevalidationAnswer)})
    def get(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        asked = list_revalidations(actor=actor_of(request), tenant=tenant, adapter=adapter, version=version)
        return page(request, asked, document=revalidation_document, ordering=("-requested_at", "-pk"))


class RevalidateView(ApiView):
    actions = {"post": Action.REVALIDATE_VERSION}

    @extend_schema(operation_id="revalidate_version", request=RevalidationInput, responses={202: RevalidationAnswer})
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        actor = actor_of(request)
        action = Action.REVALIDATE_VERSION
        found = get_version(actor=actor, tenant=tenant, adapter=adapter, name=version, action=action)
        asked = request_revalidation(actor=actor, version=found, **read_input(request, RevalidationInput))
        return Response(revalidation_document(asked), status=202)


def evaluation_set_summary(found: EvaluationSet) -> Document:
    """Of a set as ``list_evaluation_sets`` gives it."""
    return _summary(found, count=vars(found)["count"])


def _summary(found: EvaluationSet, *, count: int) -> Document:
    return {
        "tenant": found.tenant.name,
        "name": found.name,
        "adapter": found.adapter.name if found.adapter else None,
        "count": count,
        "digest": found.digest,
        "created_at": found.created_at,
        "changed_at": found.changed_at,
    }


def evaluation_set_document(found: EvaluationSet) -> Document:
    # Postgres keeps keys in an order of its own; the same set must always read the same.
    examples = examples_json(parse_examples(found.examples))
    return {**_summary(found, count=len(examples)), "examples": examples}


def report_summary(report: ValidationReport) -> Document:
    return {
        "verdict": report.verdict,
        "policy_version": report.policy_version,
        "digest": report.digest,
        "created_at": report.created_at,
        "is_decisive": report.digest == report.version.validation_digest,
    }


def report_document(report: ValidationReport) -> Document:
    return {**report_summary(report), "report": report.report, "reference": report.reference}


def revalidation_document(asked: Revalidation) -> Document:
    return {
        "requested_by": asked.requested_by,
        "requested_at": asked.requested_at,
        "reason": asked.reason,
        "finished_at": asked.finished_at,
        "report": asked.report.digest if asked.report else None,
    }


def _require_same(request: Request, found: EvaluationSet | None) -> None:
    require_match(request, None if found is None else evaluation_set_document(found))
