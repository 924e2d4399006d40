"""Receivers of events: a tenant's own, and the platform's."""

from datetime import timedelta

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.inputs import ReasonInput
from registry.api.rest.etags import answer, names_state, require_match
from registry.api.rest.pagination import page
from registry.api.rest.schema import listed
from registry.api.rest.views import ApiView
from registry.api.webhooks.answers import NewWebhookAnswer, WebhookAnswer, WholeDeliveryAnswer
from registry.api.webhooks.documents import new_webhook_document, webhook_document, whole_delivery_document
from registry.api.webhooks.inputs import EnableInput, RotationInput, WebhookChangeInput, WebhookInput
from registry.permissions import Action
from registry.selectors import get_tenant, get_webhook, list_webhooks
from registry.services.webhooks.deliveries import ping_webhook
from registry.services.webhooks.endpoints import (
    change_webhook,
    create_webhook,
    disable_webhook,
    enable_webhook,
    remove_webhook,
    rotate_secret,
)

_OF_TENANT = Action.MANAGE_TENANT
_OF_PLATFORM = Action.MANAGE_PLATFORM


class WebhooksView(ApiView):
    actions = {"get": _OF_TENANT, "post": _OF_TENANT}

    @extend_schema(operation_id="list_webhooks", responses={200: listed(WebhookAnswer)})
    def get(self, request: Request, tenant: str) -> Response:
        return _list(request, tenant)

    @extend_schema(operation_id="create_webhook", request=WebhookInput, responses={201: NewWebhookAnswer})
    def post(self, request: Request, tenant: str) -> Response:
        return _create(request, tenant)


class PlatformWebhooksView(ApiView):
    actions = {"get": _OF_PLATFORM, "post": _OF_PLATFORM}

    @extend_schema(operation_id="list_platform_webhooks", responses={200: listed(WebhookAnswer)})
    def get(self, request: Request) -> Response:
        return _list(request, None)

    @extend_schema(operation_id="create_platform_webhook", request=WebhookInput, responses={201: NewWebhookAnswer})
    def post(self, request: Request) -> Response:
        return _create(request, None)


class WebhookView(ApiView):
    actions = {"get": _OF_TENANT, "put": _OF_TENANT, "delete": _OF_TENANT}

    @extend_schema(operation_id="get_webhook", responses={200: WebhookAnswer})
    def get(self, request: Request, tenant: str, webhook: str) -> Response:
        return _show(request, tenant, webhook)

    @extend_schema(operation_id="change_webhook", request=WebhookChangeInput, responses={200: WebhookAnswer})
    def put(self, request: Request, tenant: str, webhook: str) -> Response:
        return _change(request, tenant, webhook)

    @extend_schema(operation_id="remove_webhook", responses={204: None})
    def delete(self, request: Request, tenant: str, webhook: str) -> Response:
        return _remove(request, tenant, webhook)


class PlatformWebhookView(ApiView):
    actions = {"get": _OF_PLATFORM, "put": _OF_PLATFORM, "delete": _OF_PLATFORM}

    @extend_schema(operation_id="get_platform_webhook", responses={200: WebhookAnswer})
    def get(self, request: Request, webhook: str) -> Response:
        return _show(request, None, webhook)

    @extend_schema(operation_id="change_platform_webhook", request=WebhookChangeInput, responses={200: WebhookAnswer})
    def put(self, request: Request, webhook: str) -> Response:
        return _change(request, None, webhook)

    @extend_schema(operation_id="remove_platform_webhook", responses={204: None})
    def delete(self, request: Request, webhook: str) -> Response:
        return _remove(request, None, webhook)


class RotationView(ApiView):
    actions = {"post": _OF_TENANT}

    @extend_schema(operation_id="rotate_webhook_secret", request=RotationInput, responses={200: NewWebhookAnswer})
    def post(self, request: Request, tenant: str, webhook: str) -> Response:
        return _rotate(request, tenant, webhook)


class PlatformRotationView(ApiView):
    actions = {"post": _OF_PLATFORM}

    @extend_schema(
        operation_id="rotate_platform_webhook_secret", request=RotationInput, responses={200: NewWebhookAnswer}
    )
    def post(self, request: Request, webhook: str) -> Response:
        return _rotate(request, None, webhook)


class PingView(ApiView):
    actions = {"post": _OF_TENANT}

    @extend_schema(operation_id="ping_webhook", request=None, responses={202: WholeDeliveryAnswer})
    def post(self, request: Request, tenant: str, webhook: str) -> Response:
        return _ping(request, tenant, webhook)


class PlatformPingView(ApiView):
    actions = {"post": _OF_PLATFORM}

    @extend_schema(operation_id="ping_platform_webhook", request=None, responses={202: WholeDeliveryAnswer})
    def post(self, request: Request, webhook: str) -> Response:
        return _ping(request, None, webhook)


class EnableView(ApiView):
    actions = {"post": _OF_TENANT}

    @extend_schema(operation_id="enable_webhook", request=EnableInput, responses={200: WebhookAnswer})
    def post(self, request: Request, tenant: str, webhook: str) -> Response:
        return _enable(request, tenant, webhook)


class PlatformEnableView(ApiView):
    actions = {"post": _OF_PLATFORM}

    @extend_schema(operation_id="enable_platform_webhook", request=EnableInput, responses={200: WebhookAnswer})
    def post(self, request: Request, webhook: str) -> Response:
        return _enable(request, None, webhook)


class DisableView(ApiView):
    actions = {"post": _OF_TENANT}

    @extend_schema(operation_id="disable_webhook", request=ReasonInput, responses={200: WebhookAnswer})
    def post(self, request: Request, tenant: str, webhook: str) -> Response:
        return _disable(request, tenant, webhook)


class PlatformDisableView(ApiView):
    actions = {"post": _OF_PLATFORM}

    @extend_schema(operation_id="disable_platform_webhook", request=ReasonInput, responses={200: WebhookAnswer})
    def post(self, request: Request, webhook: str) -> Response:
        return _disable(request, None, webhook)


def _list(request: Request, tenant: str | None) -> Response:
    found = list_webhooks(actor=actor_of(request), tenant=tenant)
    return page(request, found, ordering=("name",), document=webhook_document)


def _create(request: Request, tenant: str | None) -> Response:
    actor = actor_of(request)
    owner = None if tenant is None else get_tenant(actor=actor, name=tenant, action=_OF_TENANT)
    made = create_webhook(actor=actor, tenant=owner, **read_input(request, WebhookInput))
    return Response(new_webhook_document(made), status=201)


def _show(request: Request, tenant: str | None, webhook: str) -> Response:
    found = get_webhook(actor=actor_of(request), tenant=tenant, name=webhook)
    return answer(webhook_document(found), request)


def _change(request: Request, tenant: str | None, webhook: str) -> Response:
    actor = actor_of(request)
    seen = get_webhook(actor=actor, tenant=tenant, name=webhook)
    body = read_input(request, WebhookChangeInput)
    require_match(request, webhook_document(seen))
    expected = seen if names_state(request) else None
    changed = change_webhook(actor=actor, endpoint=seen, expected=expected, **body)
    return answer(webhook_document(changed), request)


def _remove(request: Request, tenant: str | None, webhook: str) -> Response:
    actor = actor_of(request)
    found = get_webhook(actor=actor, tenant=tenant, name=webhook)
    require_match(request, webhook_document(found))
    remove_webhook(actor=actor, endpoint=found)
    return Response(status=204)


def _rotate(request: Request, tenant: str | None, webhook: str) -> Response:
    actor = actor_of(request)
    found = get_webhook(actor=actor, tenant=tenant, name=webhook)
    overlap = timedelta(hours=read_input(request, RotationInput)["overlap_hours"])
    return Response(new_webhook_document(rotate_secret(actor=actor, endpoint=found, overlap=overlap)))


def _ping(request: Request, tenant: str | None, webhook: str) -> Response:
    actor = actor_of(request)
    found = get_webhook(actor=actor, tenant=tenant, name=webhook)
    return Response(whole_delivery_document(ping_webhook(actor=actor, endpoint=found)), status=202)


def _enable(request: Request, tenant: str | None, webhook: str) -> Response:
    actor = actor_of(request)
    found = get_webhook(actor=actor, tenant=tenant, name=webhook)
    body = read_input(request, EnableInput)
    return Response(webhook_document(enable_webhook(actor=actor, endpoint=found, **body)))


def _disable(request: Request, tenant: str | None, webhook: str) -> Response:
    actor = actor_of(request)
    found = get_webhook(actor=actor, tenant=tenant, name=webhook)
    body = read_input(request, ReasonInput)
    return Response(webhook_document(disable_webhook(actor=actor, endpoint=found, **body)))
