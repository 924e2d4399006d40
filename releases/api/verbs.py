"""What people do to a release that is made: one address for each verb."""

from typing import Protocol

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.actors import Actor
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.rest.etags import answer
from registry.api.rest.views import ApiView
from registry.permissions import Action
from releases.api.answers import WholeReleaseAnswer
from releases.api.documents import whole_release_document
from releases.api.inputs import ReleaseRollbackInput, ReleaseVerbInput
from releases.models import Release
from releases.selectors import find_release
from releases.services.releases.rollback import roll_back_release
from releases.services.releases.verbs import (
    abort_release,
    pause_release,
    promote_release,
    resume_release,
    retry_release,
    start_release,
)


class _Verb(Protocol):
    def __call__(
        self, *, actor: Actor, release: Release, reason: str = "", expected_revision: int | None = None
    ) -> Release: ...


class StartReleaseView(ApiView):
    actions = {"post": Action.START_RELEASE}

    @extend_schema(operation_id="start_release", request=ReleaseVerbInput, responses={200: WholeReleaseAnswer})
    def post(self, request: Request, tenant: str, alias: str, number: int) -> Response:
        return _done(request, start_release, Action.START_RELEASE, (tenant, alias, number))


class PauseReleaseView(ApiView):
    actions = {"post": Action.STEER_RELEASE}

    @extend_schema(operation_id="pause_release", request=ReleaseVerbInput, responses={200: WholeReleaseAnswer})
    def post(self, request: Request, tenant: str, alias: str, number: int) -> Response:
        return _done(request, pause_release, Action.STEER_RELEASE, (tenant, alias, number))


class ResumeReleaseView(ApiView):
    actions = {"post": Action.STEER_RELEASE}

    @extend_schema(operation_id="resume_release", request=ReleaseVerbInput, responses={200: WholeReleaseAnswer})
    def post(self, request: Request, tenant: str, alias: str, number: int) -> Response:
        return _done(request, resume_release, Action.STEER_RELEASE, (tenant, alias, number))


class RetryReleaseView(ApiView):
    actions = {"post": Action.STEER_RELEASE}

    @extend_schema(operation_id="retry_release", request=ReleaseVerbInput, responses={200: WholeReleaseAnswer})
    def post(self, request: Request, tenant: str, alias: str, number: int) -> Response:
        return _done(request, retry_release, Action.STEER_RELEASE, (tenant, alias, number))


class PromoteReleaseView(ApiView):
    actions = {"post": Action.PROMOTE_RELEASE}

    @extend_schema(operation_id="promote_release", request=ReleaseVerbInput, responses={200: WholeReleaseAnswer})
    def post(self, request: Request, tenant: str, alias: str, number: int) -> Response:
        return _done(request, promote_release, Action.PROMOTE_RELEASE, (tenant, alias, number))


class AbortReleaseView(ApiView):
    actions = {"post": Action.STEER_RELEASE}

    @extend_schema(operation_id="abort_release", request=ReleaseVerbInput, responses={200: WholeReleaseAnswer})
    def post(self, request: Request, tenant: str, alias: str, number: int) -> Response:
        return _done(request, abort_release, Action.STEER_RELEASE, (tenant, alias, number))


class RollBackReleaseView(ApiView):
    actions = {"post": Action.ROLL_BACK_ALIAS}

    @extend_schema(operation_id="roll_back_release", request=ReleaseRollbackInput, responses={200: WholeReleaseAnswer})
    def post(self, request: Request, tenant: str, alias: str, number: int) -> Response:
        actor = actor_of(request)
        release = find_release(actor=actor, tenant=tenant, alias=alias, number=number, action=Action.ROLL_BACK_ALIAS)
        body = read_input(request, ReleaseRollbackInput)
        rolled = roll_back_release(actor=actor, release=release, asked_at=self.came_at, **body)
        return answer(whole_release_document(rolled), request)


def _done(request: Request, verb: _Verb, action: Action, names: tuple[str, str, int]) -> Response:
    """Do the verb to the release that ``names`` (tenant, alias, number) name, and answer how it is then."""
    actor, (tenant, alias, number) = actor_of(request), names
    release = find_release(actor=actor, tenant=tenant, alias=alias, number=number, action=action)
    body = read_input(request, ReleaseVerbInput)
    return answer(whole_release_document(verb(actor=actor, release=release, **body)), request)
