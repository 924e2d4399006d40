"""Reads. Each takes the actor and sees only what the actor may see."""

from typing import Final
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import NotFound
from registry.models import Adapter, AuditRecord, BaseModel, BaseModelRevision, Membership, SigningKey, Tenant, Version
from registry.permissions import Action, require_in_tenant, require_on_platform

# What one answer holds at most of a list that grows without end.
MAX_LISTED: Final = 1000
SHOWN_WITH_VERSION: Final = ("files__artifact", "approvals__reviewer")


def get_tenant(*, actor: Actor, name: str, action: Action = Action.VIEW_TENANT) -> Tenant:
    """The tenant, if ``actor`` may do ``action`` in it. Raises ``NotFound`` or ``PermissionDenied``."""
    tenant = Tenant.objects.filter(name=name).first()
    if tenant is None:
        raise NotFound(_("There is no such tenant, or you are not a member of it."), field="tenant")
    require_in_tenant(actor, action, tenant.pk)
    return tenant


def list_tenants(*, actor: Actor) -> QuerySet[Tenant]:
    """The tenants the actor belongs to; all of them for a platform admin."""
    require_on_platform(actor, Action.VIEW_PLATFORM)
    tenants = Tenant.objects.order_by("name")
    return tenants if actor.is_platform_admin else tenants.filter(pk__in=list(actor.roles))


def list_members(*, actor: Actor, tenant: str) -> QuerySet[Membership]:
    owner = get_tenant(actor=actor, name=tenant)
    return Membership.objects.select_related("person", "tenant").filter(tenant=owner).order_by("person__email", "role")


def get_adapter(*, actor: Actor, tenant: str, name: str, action: Action = Action.VIEW_TENANT) -> Adapter:
    owner = get_tenant(actor=actor, name=tenant, action=action)
    adapter = Adapter.objects.select_related("tenant", "base_model").filter(tenant=owner, name=name).first()
    if adapter is None:
        raise NotFound(
            _("Tenant %(tenant)s has no adapter named %(name)s.") % {"tenant": tenant, "name": name}, field="adapter"
        )
    return adapter


def list_adapters(*, actor: Actor, tenant: str) -> QuerySet[Adapter]:
    owner = get_tenant(actor=actor, name=tenant)
    return Adapter.objects.select_related("tenant", "base_model").filter(tenant=owner).order_by("name")


def versions_with_relations() -> QuerySet[Version]:
    """Versions with everything that naming them or showing them needs."""
    return Version.objects.select_related(
        "adapter__tenant", "adapter__base_model", "base_revision__base_model", "uploader"
    )


def get_version(*, actor: Actor, tenant: str, adapter: str, name: str, action: Action = Action.VIEW_TENANT) -> Version:
    line = get_adapter(actor=actor, tenant=tenant, name=adapter, action=action)
    version = versions_with_relations().filter(adapter=line, name=name).first()
    if version is None:
        raise NotFound(
            _("Adapter %(adapter)s has no version %(name)s.") % {"adapter": line, "name": name}, field="version"
        )
    return version


def get_version_by_id(*, version_id: UUID) -> Version:
    """For parts of the system that were given an id by the registry itself."""
    version = versions_with_relations().filter(pk=version_id).first()
    if version is None:
        raise NotFound(_("There is no version with this id."), field="version_id")
    return version


def list_versions(*, actor: Actor, tenant: str, adapter: str) -> QuerySet[Version]:
    """The newest, with all that showing them needs."""
    line = get_adapter(actor=actor, tenant=tenant, name=adapter)
    versions = versions_with_relations().prefetch_related(*SHOWN_WITH_VERSION).filter(adapter=line)
    return versions.order_by("-created_at", "-name")[:MAX_LISTED]


def list_base_models(*, actor: Actor) -> QuerySet[BaseModel]:
    require_on_platform(actor, Action.VIEW_PLATFORM)
    return BaseModel.objects.order_by("name").prefetch_related("revisions")


def get_base_revision(*, actor: Actor, base_model: str, label: str) -> BaseModelRevision:
    require_on_platform(actor, Action.VIEW_PLATFORM)
    return find_base_revision(base_model=base_model, label=label)


def find_base_revision(*, base_model: str, label: str) -> BaseModelRevision:
    revision = (
        BaseModelRevision.objects.select_related("base_model").filter(base_model__name=base_model, label=label).first()
    )
    if revision is None:
        raise NotFound(
            _("Base model %(base)s has no revision %(label)s. Register it first: lorekeeper base register.")
            % {"base": base_model, "label": label},
            field="base_revision",
        )
    return revision


def list_signing_keys() -> QuerySet[SigningKey]:
    """Public keys are public."""
    return SigningKey.objects.order_by("valid_from")


def list_audit(*, actor: Actor, tenant: str, after_seq: int = 0) -> QuerySet[AuditRecord]:
    get_tenant(actor=actor, name=tenant, action=Action.READ_AUDIT)
    return AuditRecord.objects.filter(chain=tenant, seq__gt=after_seq).order_by("seq")
