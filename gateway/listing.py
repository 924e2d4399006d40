"""The tenant's aliases as OpenAI's list of models."""

from gateway.routing.resolve import resolve
from gateway.routing.snapshot import RoutingSnapshot


def model_list(snapshot: RoutingSnapshot, tenant: str) -> dict[str, object]:
    """Every alias of the tenant that can answer."""
    return {"object": "list", "data": [_document(name, tenant) for name in snapshot.served_aliases(tenant)]}


def model_document(snapshot: RoutingSnapshot, tenant: str, model: str) -> dict[str, object]:
    """One alias; raises as `resolve` does."""
    return _document(resolve(snapshot, tenant=tenant, model=model).alias.name, tenant)


def _document(name: str, tenant: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": tenant}
