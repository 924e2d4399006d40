"""The review of versions: approving, declining, commenting, the inbox, and taking versions back."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.actors import Actor
from registry.api.answers import VersionAnswer
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.documents import Document, version_document
from registry.api.inputs import ApprovalInput, ReasonInput
from registry.api.rest.pagination import page, whole
from registry.api.rest.schema import listed, listed_whole
from registry.api.rest.views import ApiView
from registry.models import Approval, Version, VersionComment
from registry.permissions import Action
from registry.ports import Holder
from registry.quorum import Standing, Void
from registry.reviews import review_of, review_of_listed
from registry.selectors import get_version, list_comments, list_holders, list_inbox
from registry.services.approvals import approve_version, break_glass, decline_version
from registry.services.review.comments import write_comment
from registry.services.withdrawals import revoke_version, yank_version


class BreakGlassInput(serializers.Serializer[Any]):
    digest = serializers.CharField(max_length=64, help_text="`root_digest` of what is approved.")
    validation_digest = serializers.CharField(required=False, allow_null=True, default=None, max_length=64)
    reason = serializers.CharField(max_length=4000)


class CommentInput(serializers.Serializer[Any]):
    text = serializers.CharField(max_length=4000)


class CommentAnswer(serializers.Serializer[Any]):
    author = serializers.CharField(help_text="E-mail.")
    text = serializers.CharField()
    at = serializers.DateTimeField()


class HolderAnswer(serializers.Serializer[Any]):
    node = serializers.CharField()
    observed = serializers.CharField(help_text="What the node said last.")
    desired = serializers.CharField(help_text="What it was told to come to.")


class WithdrawnAnswer(VersionAnswer):
    holders = HolderAnswer(many=True, help_text="The nodes that still hold it.")


class GivenApprovalAnswer(serializers.Serializer[Any]):
    reviewer = serializers.CharField()
    comment = serializers.CharField()
    at = serializers.DateTimeField()
    break_glass = serializers.BooleanField()
    root_digest = serializers.CharField()
    validation_digest = serializers.CharField()
    base_digest = serializers.CharField()
    void = serializers.ChoiceField(
        choices=[void.value for void in Void], allow_null=True, help_text="Why it does not count; null if it does."
    )


class StandingAnswer(serializers.Serializer[Any]):
    required = serializers.IntegerField(  # type: ignore[assignment]  # not the attribute that every field has
        help_text="How many different people have to approve."
    )
    given = serializers.IntegerField(help_text="How many of them have.")
    missing_people = serializers.ListField(child=serializers.CharField(), help_text="Who has to by name and has not.")
    met = serializers.BooleanField(help_text="Whether that is enough.")


class ReviewAnswer(StandingAnswer):
    approvals = GivenApprovalAnswer(many=True)


class InboxAnswer(VersionAnswer):
    review = StandingAnswer()


class ApproveView(ApiView):
    actions = {"post": Action.APPROVE_VERSION}
    in_steps = True

    @extend_schema(operation_id="approve_version", request=ApprovalInput, responses={200: VersionAnswer})
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        actor = actor_of(request)
        found = get_version(actor=actor, tenant=tenant, adapter=adapter, name=version, action=Action.APPROVE_VERSION)
        approved = approve_version(actor=actor, version=found, **read_input(request, ApprovalInput))
        return Response(version_document(approved))


class BreakGlassView(ApiView):
    actions = {"post": Action.BREAK_GLASS}
    in_steps = True

    @extend_schema(operation_id="break_glass", request=BreakGlassInput, responses={200: VersionAnswer})
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        actor = actor_of(request)
        found = get_version(actor=actor, tenant=tenant, adapter=adapter, name=version, action=Action.BREAK_GLASS)
        approved = break_glass(actor=actor, version=found, **read_input(request, BreakGlassInput))
        return Response(version_document(approved))


class DeclineView(ApiView):
    actions = {"post": Action.APPROVE_VERSION}

    @extend_schema(operation_id="decline_version", request=ReasonInput, responses={200: VersionAnswer})
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        actor = actor_of(request)
        found = get_version(actor=actor, tenant=tenant, adapter=adapter, name=version, action=Action.APPROVE_VERSION)
        declined = decline_version(actor=actor, version=found, **read_input(request, ReasonInput))
        return Response(version_document(declined))


class YankView(ApiView):
    actions = {"post": Action.WITHDRAW_VERSION}

    @extend_schema(operation_id="yank_version", request=ReasonInput, responses={200: WithdrawnAnswer})
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        actor = actor_of(request)
        found = _withdrawable(actor, tenant, adapter, version)
        return _withdrawn(yank_version(actor=actor, version=found, **read_input(request, ReasonInput)))


class RevokeView(ApiView):
    actions = {"post": Action.WITHDRAW_VERSION}

    @extend_schema(operation_id="revoke_version", request=ReasonInput, responses={200: WithdrawnAnswer})
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        actor = actor_of(request)
        found = _withdrawable(actor, tenant, adapter, version)
        return _withdrawn(revoke_version(actor=actor, version=found, **read_input(request, ReasonInput)))


class HoldersView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="list_holders", responses={200: listed_whole(HolderAnswer)})
    def get(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        found = get_version(actor=actor_of(request), tenant=tenant, adapter=adapter, name=version)
        return whole([holder_document(holder) for holder in list_holders(version=found)])


class ReviewView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="get_review", responses={200: ReviewAnswer})
    def get(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        found = get_version(actor=actor_of(request), tenant=tenant, adapter=adapter, name=version)
        review = review_of(found)
        given = [given_approval_document(approval, void) for approval, void in review.approvals]
        return Response({**standing_document(review.standing), "approvals": given})


class CommentsView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "post": Action.COMMENT_VERSION}

    @extend_schema(operation_id="list_comments", responses={200: listed(CommentAnswer)})
    def get(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        found = get_version(actor=actor_of(request), tenant=tenant, adapter=adapter, name=version)
        comments = list_comments(version=found)
        return page(request, comments, ordering=("created_at", "pk"), document=comment_document)

    @extend_schema(operation_id="write_comment", request=CommentInput, responses={201: CommentAnswer})
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        actor = actor_of(request)
        found = get_version(actor=actor, tenant=tenant, adapter=adapter, name=version, action=Action.COMMENT_VERSION)
        comment = write_comment(actor=actor, version=found, **read_input(request, CommentInput))
        return Response(comment_document(comment), status=201)


class InboxView(ApiView):
    """What the caller can approve now, in all tenants."""

    actions = {"get": Action.VIEW_PLATFORM}

    @extend_schema(operation_id="list_inbox", responses={200: listed(InboxAnswer)})
    def get(self, request: Request) -> Response:
        waiting = list_inbox(actor=actor_of(request))
        return page(request, waiting, ordering=("created_at", "pk"), document=inbox_document)


def comment_document(comment: VersionComment) -> Document:
    return {"author": comment.author.email, "text": comment.text, "at": comment.created_at}


def holder_document(holder: Holder) -> Document:
    return {"node": holder.node, "observed": holder.observed, "desired": holder.desired}


def given_approval_document(approval: Approval, void: Void | None) -> Document:
    return {
        "reviewer": approval.reviewer.email,
        "comment": approval.comment,
        "at": approval.created_at,
        "break_glass": approval.break_glass,
        "root_digest": approval.root_digest,
        "validation_digest": approval.validation_digest,
        "base_digest": approval.base_digest,
        "void": None if void is None else void.value,
    }


def standing_document(standing: Standing) -> Document:
    return {
        "required": standing.required,
        "given": len(standing.counted),
        "missing_people": sorted(standing.missing_people),
        "met": standing.met,
    }


def inbox_document(version: Version) -> Document:
    return {**version_document(version), "review": standing_document(review_of_listed(version).standing)}


def _withdrawn(version: Version) -> Response:
    holders = [holder_document(holder) for holder in list_holders(version=version)]
    return Response({**version_document(version), "holders": holders})


def _withdrawable(actor: Actor, tenant: str, adapter: str, version: str) -> Version:
    return get_version(actor=actor, tenant=tenant, adapter=adapter, name=version, action=Action.WITHDRAW_VERSION)
