"""Releases: making, reading and approving them."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.rest.etags import answer
from registry.api.rest.filters import read_filters
from registry.api.rest.pagination import page, whole
from registry.api.rest.schema import listed, listed_whole
from registry.api.rest.views import ApiView
from registry.permissions import Action
from registry.selectors import get_version
from releases.api.answers import ReleaseAnswer, ReleaseStepAnswer, RollbackAnswer, WholeReleaseAnswer
from releases.api.documents import (
    SHOWN_WITH_RELEASE,
    release_document,
    rollback_document,
    step_document,
    whole_release_document,
)
from releases.api.inputs import ReleaseApprovalInput, ReleaseFilters, ReleaseInput
from releases.selectors import get_alias, get_release, list_releases, list_rollbacks
from releases.services.releases.approve import approve_release
from releases.services.releases.make import make_release
from releases.templates import DEFAULT


class TenantReleasesView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="list_releases", parameters=[ReleaseFilters], responses={200: listed(ReleaseAnswer)})
    def get(self, request: Request, tenant: str) -> Response:
        releases = list_releases(actor=actor_of(request), tenant=tenant)
        wanted = releases.filter(**read_filters(request, ReleaseFilters))
        shown = wanted.prefetch_related(None).prefetch_related(*SHOWN_WITH_RELEASE)
        return page(request, shown, ordering=("-made_at", "-pk"), document=release_document)


class ReleasesView(ApiView):
    actions = {"post": Action.MAKE_RELEASE}

    @extend_schema(operation_id="make_release", request=ReleaseInput, responses={201: WholeReleaseAnswer})
    def post(self, request: Request, tenant: str, alias: str) -> Response:
        actor = actor_of(request)
        found = get_alias(actor=actor, tenant=tenant, name=alias, action=Action.MAKE_RELEASE)
        body = read_input(request, ReleaseInput)
        names = {"adapter": body.pop("adapter"), "name": body.pop("version")}
        candidate = get_version(actor=actor, tenant=tenant, action=Action.MAKE_RELEASE, **names)
        body["template"] = body["template"] or DEFAULT
        made = make_release(actor=actor, alias=found, candidate=candidate, **body)
        return answer(whole_release_document(made), request, status=201)


class ReleaseView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="get_release", responses={200: WholeReleaseAnswer})
    def get(self, request: Request, tenant: str, alias: str, number: int) -> Response:
        release = get_release(actor=actor_of(request), tenant=tenant, alias=alias, number=number)
        return answer(whole_release_document(release), request)


class ReleaseTimelineView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="get_release_timeline", responses={200: listed_whole(ReleaseStepAnswer)})
    def get(self, request: Request, tenant: str, alias: str, number: int) -> Response:
        release = get_release(actor=actor_of(request), tenant=tenant, alias=alias, number=number)
        return whole([step_document(step) for step in release.steps.order_by("index")])


class ApproveReleaseView(ApiView):
    actions = {"post": Action.APPROVE_RELEASE}

    @extend_schema(operation_id="approve_release", request=ReleaseApprovalInput, responses={200: WholeReleaseAnswer})
    def post(self, request: Request, tenant: str, alias: str, number: int) -> Response:
        actor = actor_of(request)
        release = get_release(actor=actor, tenant=tenant, alias=alias, number=number, action=Action.APPROVE_RELEASE)
        approved = approve_release(actor=actor, release=release, **read_input(request, ReleaseApprovalInput))
        return answer(whole_release_document(approved), request)


class AliasRollbacksView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="list_alias_rollbacks", responses={200: listed(RollbackAnswer)})
    def get(self, request: Request, tenant: str, alias: str) -> Response:
        rollbacks = list_rollbacks(actor=actor_of(request), tenant=tenant, alias=alias)
        return page(request, rollbacks, ordering=("-asked_at", "-pk"), document=rollback_document)
