"""What was sent to receivers, what came of it, and sending it again."""

import re
from typing import Final

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.actors import Actor
from registry.api.authentication import actor_of
from registry.api.rest.filters import read_filters
from registry.api.rest.pagination import page
from registry.api.rest.schema import listed
from registry.api.rest.views import ApiView
from registry.api.webhooks.answers import DeliveryAnswer, WholeDeliveryAnswer
from registry.api.webhooks.documents import delivery_document, whole_delivery_document
from registry.api.webhooks.inputs import DeliveryFilters
from registry.errors import NotFound
from registry.models import WebhookDelivery
from registry.permissions import Action
from registry.selectors import get_delivery, get_webhook, list_deliveries
from registry.services.webhooks.deliveries import redeliver

_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


class DeliveriesView(ApiView):
    """The newest first."""

    actions = {"get": Action.MANAGE_TENANT}

    @extend_schema(
        operation_id="list_deliveries", parameters=[DeliveryFilters], responses={200: listed(DeliveryAnswer)}
    )
    def get(self, request: Request, tenant: str, webhook: str) -> Response:
        return _list(request, tenant, webhook)


class PlatformDeliveriesView(ApiView):
    """The newest first."""

    actions = {"get": Action.MANAGE_PLATFORM}

    @extend_schema(
        operation_id="list_platform_deliveries", parameters=[DeliveryFilters], responses={200: listed(DeliveryAnswer)}
    )
    def get(self, request: Request, webhook: str) -> Response:
        return _list(request, None, webhook)


class DeliveryView(ApiView):
    actions = {"get": Action.MANAGE_TENANT}

    @extend_schema(operation_id="get_delivery", responses={200: WholeDeliveryAnswer})
    def get(self, request: Request, tenant: str, webhook: str, delivery: str) -> Response:
        return Response(whole_delivery_document(_find(actor_of(request), tenant, webhook, delivery)))


class PlatformDeliveryView(ApiView):
    actions = {"get": Action.MANAGE_PLATFORM}

    @extend_schema(operation_id="get_platform_delivery", responses={200: WholeDeliveryAnswer})
    def get(self, request: Request, webhook: str, delivery: str) -> Response:
        return Response(whole_delivery_document(_find(actor_of(request), None, webhook, delivery)))


class RedeliveryView(ApiView):
    actions = {"post": Action.MANAGE_TENANT}

    @extend_schema(operation_id="redeliver", request=None, responses={202: WholeDeliveryAnswer})
    def post(self, request: Request, tenant: str, webhook: str, delivery: str) -> Response:
        return _again(request, tenant, webhook, delivery)


class PlatformRedeliveryView(ApiView):
    actions = {"post": Action.MANAGE_PLATFORM}

    @extend_schema(operation_id="redeliver_of_platform", request=None, responses={202: WholeDeliveryAnswer})
    def post(self, request: Request, webhook: str, delivery: str) -> Response:
        return _again(request, None, webhook, delivery)


def _list(request: Request, tenant: str | None, webhook: str) -> Response:
    endpoint = get_webhook(actor=actor_of(request), tenant=tenant, name=webhook)
    wanted = list_deliveries(endpoint=endpoint).filter(**read_filters(request, DeliveryFilters))
    return page(request, wanted, ordering=("-pk",), document=delivery_document)


def _again(request: Request, tenant: str | None, webhook: str, delivery: str) -> Response:
    actor = actor_of(request)
    found = _find(actor, tenant, webhook, delivery)
    return Response(whole_delivery_document(redeliver(actor=actor, delivery=found)), status=202)


def _find(actor: Actor, tenant: str | None, webhook: str, delivery: str) -> WebhookDelivery:
    endpoint = get_webhook(actor=actor, tenant=tenant, name=webhook)
    if _NUMBER.fullmatch(delivery) is None:
        raise NotFound(_("There is no such delivery to this webhook."), field="delivery")
    return get_delivery(endpoint=endpoint, number=int(delivery))
