"""Web's ``/metrics``: what all its processes counted, and the fleet."""

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from django.http import HttpResponse
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from rest_framework.request import Request

from config.metrics.fleet import make_registry
from registry.api.authentication import actor_of
from registry.api.rest.views import ApiView
from registry.permissions import Action, require_on_platform


class MetricsView(ApiView):
    """Everything at once, so it is for tokens that were made for that: it tells the names of all tenants."""

    actions: ClassVar[Mapping[str, Action | None]] = {"get": Action.READ_METRICS}

    def get(self, request: Request) -> HttpResponse:
        require_on_platform(actor_of(request), Action.READ_METRICS)
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return HttpResponse(encode(_registry()), content_type=content_type)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[Any, str]:  # noqa: ARG002, FBT001, FBT002
        """Leave the choice to ``get``: the formats of Prometheus are none of REST framework's."""
        return super().perform_content_negotiation(request, force=True)


@cache
def _registry() -> CollectorRegistry:
    return make_registry()
