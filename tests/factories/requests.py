"""Request records and marks as gateways write them."""

from typing import Any
from uuid import uuid4

from django.utils import timezone

from cachecontrol.models import GatewayFeedback, GatewayRequest
from registry.models import Version


def make_request(version: Version | None = None, **facts: Any) -> GatewayRequest:
    """One answered request, for the version's tenant if there is one, else for acme."""
    known: dict[str, Any] = {
        "at": timezone.now(),
        "request_id": f"req-{uuid4().hex}",
        "tenant": "acme" if version is None else version.adapter.tenant.name,
        "alias": "prod",
        "version_id": None if version is None else version.pk,
        "tier": "gpu",
        "status": 200,
        "error_kind": "",
        "queue_ms": 0,
        "load_ms": 0,
        "ttft_ms": 10,
        "total_ms": 100,
        "stream": False,
    }
    return GatewayRequest.objects.create(**(known | facts))


def make_mark(request: GatewayRequest, mark: float, **facts: Any) -> GatewayFeedback:
    """What the application that made the request says of its answer."""
    known: dict[str, Any] = {
        "at": timezone.now(),
        "tenant": request.tenant,
        "request_id": request.request_id,
        "name": "quality",
    }
    return GatewayFeedback.objects.create(mark=mark, **(known | facts))
