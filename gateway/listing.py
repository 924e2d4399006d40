"""What a tenant may ask for, as OpenAI's list of models: its aliases and shared ones, and permitted base models."""

from gateway.routing.resolve import Route, resolve
from gateway.routing.snapshot import Alias, RoutingSnapshot

_BASE_OWNER = "base"
_SHARED_OWNER = "shared"


def model_list(snapshot: RoutingSnapshot, tenant: str) -> dict[str, object]:
    """Every alias of the tenant that can answer, then every base model that it may use and some node serves."""
    bases = sorted(name for name in snapshot.rules[tenant].base_models if name in snapshot.bases)
    own = snapshot.aliases.get(tenant, {})
    documents = [_alias_document(own[name]) for name in snapshot.served_aliases(tenant)]
    return {"object": "list", "data": [*documents, *(_document(name, _BASE_OWNER) for name in bases)]}


def model_document(snapshot: RoutingSnapshot, tenant: str, model: str) -> dict[str, object]:
    """One of them; raises as `resolve` does."""
    route = resolve(snapshot, tenant=tenant, model=model)
    if isinstance(route, Route):
        return _alias_document(route.alias)
    return _document(route.base_model, _BASE_OWNER)


def _alias_document(alias: Alias) -> dict[str, object]:
    """Whose a shared alias is, is not the caller's to know."""
    return _document(alias.name, _SHARED_OWNER if alias.is_shared else alias.tenant)


def _document(name: str, owner: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": owner}
