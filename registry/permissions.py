"""Which role and which scope allow which action. Every service asks here; nothing else decides."""

from enum import StrEnum
from typing import Final

from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import NotAMember, PermissionDenied
from registry.states import Role, Scope


class Action(StrEnum):
    """Everything a caller can ask for."""

    VIEW_TENANT = "view_tenant"
    UPLOAD_VERSION = "upload_version"
    CREATE_ADAPTER = "create_adapter"
    APPROVE_VERSION = "approve_version"
    COMMENT_VERSION = "comment_version"
    BREAK_GLASS = "break_glass"
    REVALIDATE_VERSION = "revalidate_version"
    MANAGE_EVALUATION = "manage_evaluation"
    WITHDRAW_VERSION = "withdraw_version"
    MOVE_ALIAS = "move_alias"
    ROLL_BACK_ALIAS = "roll_back_alias"
    MAKE_RELEASE = "make_release"
    APPROVE_RELEASE = "approve_release"
    START_RELEASE = "start_release"
    STEER_RELEASE = "steer_release"
    PROMOTE_RELEASE = "promote_release"
    MANAGE_RELEASE_TEMPLATE = "manage_release_template"
    OPERATE_VERSION = "operate_version"
    READ_AUDIT = "read_audit"
    READ_PLATFORM_AUDIT = "read_platform_audit"
    PROTECT_ALIAS = "protect_alias"
    MANAGE_TENANT = "manage_tenant"
    VIEW_PLATFORM = "view_platform"
    MANAGE_PLATFORM = "manage_platform"
    VIEW_CACHE_POLICY = "view_cache_policy"
    DEMAND_VERSION = "demand_version"
    REPORT_NODE = "report_node"
    READ_METRICS = "read_metrics"


_READERS: Final = frozenset(Role)

ROLES_FOR: Final[dict[Action, frozenset[Role]]] = {
    Action.VIEW_TENANT: _READERS,
    Action.CREATE_ADAPTER: frozenset({Role.UPLOADER}),
    Action.UPLOAD_VERSION: frozenset({Role.UPLOADER}),
    # The default: a tenant's approval policy may name other roles.
    Action.APPROVE_VERSION: frozenset({Role.REVIEWER}),
    Action.COMMENT_VERSION: frozenset({Role.UPLOADER, Role.REVIEWER, Role.RELEASE_MANAGER, Role.OPERATOR}),
    Action.BREAK_GLASS: frozenset(),
    Action.REVALIDATE_VERSION: frozenset({Role.REVIEWER}),
    Action.MANAGE_EVALUATION: frozenset({Role.REVIEWER}),
    Action.WITHDRAW_VERSION: frozenset({Role.REVIEWER, Role.RELEASE_MANAGER}),
    Action.MOVE_ALIAS: frozenset({Role.RELEASE_MANAGER}),
    Action.ROLL_BACK_ALIAS: frozenset({Role.RELEASE_MANAGER, Role.OPERATOR}),
    Action.MAKE_RELEASE: frozenset({Role.RELEASE_MANAGER}),
    Action.APPROVE_RELEASE: frozenset({Role.REVIEWER, Role.RELEASE_MANAGER}),
    Action.START_RELEASE: frozenset({Role.RELEASE_MANAGER}),
    Action.STEER_RELEASE: frozenset({Role.RELEASE_MANAGER, Role.OPERATOR}),
    Action.PROMOTE_RELEASE: frozenset({Role.RELEASE_MANAGER}),
    Action.MANAGE_RELEASE_TEMPLATE: frozenset({Role.RELEASE_MANAGER}),
    Action.OPERATE_VERSION: frozenset({Role.OPERATOR}),
    Action.READ_AUDIT: frozenset({Role.AUDITOR}),
    Action.PROTECT_ALIAS: frozenset(),
    Action.MANAGE_TENANT: frozenset(),
}

SCOPE_FOR: Final[dict[Action, Scope]] = {
    Action.VIEW_TENANT: Scope.READ,
    Action.CREATE_ADAPTER: Scope.UPLOAD,
    Action.UPLOAD_VERSION: Scope.UPLOAD,
    Action.APPROVE_VERSION: Scope.APPROVE,
    Action.COMMENT_VERSION: Scope.APPROVE,
    Action.BREAK_GLASS: Scope.ADMIN,
    Action.REVALIDATE_VERSION: Scope.APPROVE,
    Action.MANAGE_EVALUATION: Scope.APPROVE,
    Action.WITHDRAW_VERSION: Scope.RELEASE,
    Action.MOVE_ALIAS: Scope.RELEASE,
    Action.ROLL_BACK_ALIAS: Scope.RELEASE,
    Action.MAKE_RELEASE: Scope.RELEASE,
    Action.APPROVE_RELEASE: Scope.RELEASE,
    Action.START_RELEASE: Scope.RELEASE,
    Action.STEER_RELEASE: Scope.RELEASE,
    Action.PROMOTE_RELEASE: Scope.RELEASE,
    Action.MANAGE_RELEASE_TEMPLATE: Scope.RELEASE,
    Action.OPERATE_VERSION: Scope.OPERATE,
    Action.READ_AUDIT: Scope.AUDIT,
    Action.READ_PLATFORM_AUDIT: Scope.AUDIT,
    Action.PROTECT_ALIAS: Scope.ADMIN,
    Action.MANAGE_TENANT: Scope.ADMIN,
    Action.VIEW_PLATFORM: Scope.READ,
    Action.MANAGE_PLATFORM: Scope.ADMIN,
    Action.VIEW_CACHE_POLICY: Scope.READ,
    Action.DEMAND_VERSION: Scope.DEMAND,
    Action.REPORT_NODE: Scope.NODE,
    Action.READ_METRICS: Scope.METRICS,
}

# Approving, uploading and moving aliases are acts of a tenant's own people: being platform admin is not enough. To
# break the glass is the admin's alone, and is told in the audit log of tenant and platform.
ADMIN_MAY: Final = frozenset(
    {
        Action.VIEW_TENANT,
        Action.READ_AUDIT,
        Action.PROTECT_ALIAS,
        Action.MANAGE_TENANT,
        Action.WITHDRAW_VERSION,
        Action.BREAK_GLASS,
        Action.REVALIDATE_VERSION,
    }
)

# A cache policy names every tenant with what it may hold: that is for nobody who is a member of one.
ADMIN_ALONE_MAY: Final = frozenset({Action.MANAGE_PLATFORM, Action.READ_PLATFORM_AUDIT, Action.VIEW_CACHE_POLICY})


def allows_in_tenant(actor: Actor, action: Action, tenant_id: int, *, roles: frozenset[Role] | None = None) -> bool:
    """Whether ``actor`` may do ``action`` in the tenant with that primary key.

    ``roles`` are those that allow it where the tenant decides that for itself (its approval policy), else the table's.
    """
    if actor.kind == "system":
        return True
    if SCOPE_FOR[action] not in actor.scopes:
        return False
    if actor.is_platform_admin and action in ADMIN_MAY:
        return True
    return bool(actor.roles.get(tenant_id, frozenset()) & (ROLES_FOR[action] if roles is None else roles))


def sees_all_tenants(actor: Actor) -> bool:
    """Whether everything of every tenant may be told to ``actor``, and not that of its own tenants alone."""
    return actor.kind == "system" or actor.is_platform_admin


def can_see_tenant(actor: Actor, tenant_id: int) -> bool:
    """Whether the tenant's existence may be told to ``actor``."""
    return sees_all_tenants(actor) or bool(actor.roles.get(tenant_id))


def require_in_tenant(actor: Actor, action: Action, tenant_id: int, *, roles: frozenset[Role] | None = None) -> None:
    """Raise unless allowed: ``NotFound`` for outsiders (a tenant's existence is its own), else ``PermissionDenied``."""
    if allows_in_tenant(actor, action, tenant_id, roles=roles):
        return
    if not can_see_tenant(actor, tenant_id):
        raise NotAMember(_("There is no such tenant, or you are not a member of it."), field="tenant")
    raise PermissionDenied(_missing(actor, action, roles), tenant_id=tenant_id)


def require_on_platform(actor: Actor, action: Action) -> None:
    """Raise ``PermissionDenied`` unless ``actor`` may do a platform-wide ``action``."""
    if actor.kind == "system":
        return
    if SCOPE_FOR[action] not in actor.scopes:
        raise PermissionDenied(_missing(actor, action))
    if action in ADMIN_ALONE_MAY and not actor.is_platform_admin:
        raise PermissionDenied(_("Only a platform admin may do this."))
    if action is Action.VIEW_PLATFORM and not (actor.is_platform_admin or actor.roles):
        raise PermissionDenied(_("You are not a member of any tenant."))


def _missing(actor: Actor, action: Action, allowed: frozenset[Role] | None = None) -> str:
    scope = SCOPE_FOR[action]
    if scope not in actor.scopes:
        return _("Your token lacks the scope “%(scope)s”. Make a token that has it.") % {"scope": scope.value}
    able = ROLES_FOR.get(action, frozenset()) if allowed is None else allowed
    roles = ", ".join(sorted(role.value for role in able)) or _("platform admin")
    return _("Your role does not allow this. It takes: %(roles)s.") % {"roles": roles}
