"""Reading release templates: a tenant's own by their names, and the built-in one for who has written none."""

from typing import Final

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import NotFound
from registry.models import Tenant
from registry.permissions import Action
from registry.selectors import get_tenant
from releases.models import ReleaseTemplate
from releases.plan.document import PlanDocument
from releases.plan.parse import digest_of

# The name of the built-in template; a tenant that writes one of this name has its own instead.
DEFAULT: Final = "default"
BUILT_IN: Final = 0


def newest_edition(*, tenant_id: int, name: str) -> ReleaseTemplate | None:
    """The edition in use of a tenant's own template."""
    return templates_with_relations().filter(tenant_id=tenant_id, name=name).order_by("-number").first()


def template_in_use(*, tenant: Tenant, name: str) -> ReleaseTemplate | None:
    """The edition in use: the tenant's own or the built-in one (``BUILT_IN``, not kept); None: no such template."""
    own = newest_edition(tenant_id=tenant.pk, name=name)
    return own or (built_in(tenant) if name == DEFAULT else None)


def built_in(tenant: Tenant) -> ReleaseTemplate:
    """The plan of a careful release, as a template of the tenant's that nobody wrote; it is never saved."""
    plan = PlanDocument()
    return ReleaseTemplate(
        tenant=tenant,
        name=DEFAULT,
        number=BUILT_IN,
        document=plan.model_dump(mode="json"),
        digest=digest_of(plan),
    )


def get_release_template(*, actor: Actor, tenant: str, name: str, number: int | None = None) -> ReleaseTemplate:
    """One edition of a template; without ``number`` the one in use.

    Raises:
        NotFound: the tenant has no such template, or not that edition of it.

    """
    owner = get_tenant(actor=actor, name=tenant)
    if number is None:
        found = template_in_use(tenant=owner, name=name)
    elif number == BUILT_IN and name == DEFAULT:
        found = built_in(owner)
    else:
        found = templates_with_relations().filter(tenant=owner, name=name, number=number).first()
    if found is None:
        raise NotFound(
            _("Tenant %(tenant)s has no release template named %(name)s, or not that edition of it.")
            % {"tenant": tenant, "name": name},
            field="name",
        )
    return found


def editions_of(template: ReleaseTemplate) -> QuerySet[ReleaseTemplate]:
    """All editions of a template that its caller may see; none of the built-in one, which nobody wrote."""
    return templates_with_relations().filter(tenant=template.tenant, name=template.name)


def list_release_templates(*, actor: Actor, tenant: str) -> list[ReleaseTemplate]:
    """The edition in use of every template, the built-in one among them, by name; see ``MOST_TEMPLATES``."""
    owner = get_tenant(actor=actor, name=tenant, action=Action.VIEW_TENANT)
    newest = templates_with_relations().filter(tenant=owner).order_by("name", "-number").distinct("name")
    found = {template.name: template for template in newest}
    found.setdefault(DEFAULT, built_in(owner))
    return [found[name] for name in sorted(found)]


def templates_with_relations() -> QuerySet[ReleaseTemplate]:
    """Templates with everything that naming them or showing them needs."""
    return ReleaseTemplate.objects.select_related("tenant", "written_by")
