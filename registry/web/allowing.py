"""Whether the reader of a page may do something: what a page asks before it shows itself or a button."""

from typing import Any

from registry.actors import Actor
from registry.errors import PermissionDenied
from registry.models import Tenant
from registry.permissions import ROLES_FOR, Action, allows_in_tenant, require_on_platform
from registry.reviews import policy_of, rules_of
from registry.selectors import get_tenant


def require(actor: Actor, action: Action, *, tenant: str | None) -> Tenant | None:
    """Raise unless ``actor`` may do ``action``: in the named tenant, or for an action of the platform on it.

    Raises ``NotFound`` to outsiders of the tenant, else ``PermissionDenied``.
    """
    if action in ROLES_FOR:
        return get_tenant(actor=actor, name=tenant or "", action=action)
    require_on_platform(actor, action)
    return None


def may(actor: Actor, action: Action, *, of: object = None) -> bool:
    """Whether ``actor`` may do ``action`` to ``of``: a tenant, whatever belongs to one, or None for the platform."""
    if action not in ROLES_FOR:
        try:
            require_on_platform(actor, action)
        except PermissionDenied:
            return False
        return True
    tenant = tenant_of(of)
    if tenant is None:
        return False
    # Who approves versions is for the tenant's policy to say.
    roles = rules_of(policy_of(tenant)).roles if action is Action.APPROVE_VERSION else None
    return allows_in_tenant(actor, action, tenant.pk, roles=roles)


def tenant_of(thing: Any) -> Tenant | None:  # noqa: ANN401  any model of any app
    """The tenant that a thing belongs to: itself, its ``tenant``, or that of its adapter, alias or version."""
    while thing is not None and not isinstance(thing, Tenant):
        thing = next(
            (getattr(thing, name) for name in ("tenant", "adapter", "alias", "version") if hasattr(thing, name)), None
        )
    return thing
