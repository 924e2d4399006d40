"""Writing release templates. Every edition is kept: a release names the one that it was made from."""

from collections.abc import Callable
from typing import Final

from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.documents.read import DocumentError
from registry.errors import InvalidInput, PermissionDenied
from registry.models import Tenant
from registry.naming import check_name
from registry.permissions import Action, require_in_tenant
from releases import events
from releases.models import ReleaseTemplate
from releases.plan.document import PlanDocument
from releases.plan.parse import digest_of, parse_plan
from releases.templates import newest_edition, template_in_use, templates_with_relations

# How many names a tenant's templates may have: all of them are listed in one answer.
MOST_TEMPLATES: Final = 100


@transaction.atomic
def write_template(
    *,
    actor: Actor,
    tenant: Tenant,
    name: str,
    text: str,
    unchanged: Callable[[ReleaseTemplate | None], None] = lambda _in_use: None,
) -> ReleaseTemplate:
    """Write a template's next edition, which new releases are made from. Quiet when the newest says the same.

    ``unchanged`` is called with the edition in use (None: there is no such template) while nobody else can write one,
    and raises if it isn't what the caller has seen. Releases that are made already keep their plans.

    Raises:
        InvalidInput: the text is no plan, or the tenant has ``MOST_TEMPLATES`` already; names the path.

    """
    require_in_tenant(actor, Action.MANAGE_RELEASE_TEMPLATE, tenant.pk)
    if actor.person_id is None:
        raise PermissionDenied(_("Only a person writes a release template."), tenant_id=tenant.pk)
    check_name(name, field="name")
    plan = read_plan(text, field="text")
    _lock_templates(tenant)
    unchanged(template_in_use(tenant=tenant, name=name))
    before = newest_edition(tenant_id=tenant.pk, name=name)
    if before is not None and before.text == text:
        return before
    _require_room(tenant, name)
    written = ReleaseTemplate.objects.create(
        tenant=tenant,
        name=name,
        number=1 if before is None else before.number + 1,
        text=text,
        document=plan.model_dump(mode="json"),
        digest=digest_of(plan),
        written_by_id=actor.person_id,
        written_at=timezone.now(),
    )
    events.template_written(actor=actor, template=written, before=before)
    return templates_with_relations().get(pk=written.pk)


def read_plan(text: str, *, field: str) -> PlanDocument:
    """The plan that the text writes. Raises ``InvalidInput`` that names its path, or ``field`` for the whole."""
    try:
        return parse_plan(text)
    except DocumentError as error:
        raise InvalidInput(str(error), field=error.field or field) from error


def _lock_templates(tenant: Tenant) -> None:
    """Let those who write templates of the tenant take turns: a first edition has no row to lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"release-templates:{tenant.pk}"])


def _require_room(tenant: Tenant, name: str) -> None:
    names = ReleaseTemplate.objects.filter(tenant=tenant).exclude(name=name).values("name").distinct()
    if names.count() >= MOST_TEMPLATES:
        raise InvalidInput(
            _("%(tenant)s has %(most)d release templates already. Write a new edition of one of them.")
            % {"tenant": tenant, "most": MOST_TEMPLATES},
            field="name",
        )
