"""Making a release: a plan, bound by its digest, to move an alias from its version to another one."""

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import NotFound, PermissionDenied
from registry.models import Version
from registry.permissions import Action, require_in_tenant
from releases import events
from releases.errors import AliasIsSplit
from releases.models import Alias, AliasSplit, Release, ReleaseStep, ReleaseTemplate
from releases.plan.document import PlanDocument
from releases.plan.parse import plan_of
from releases.plan.sequence import release_digest, steps_of
from releases.selectors import active_release, lock_alias, lock_versions, releases_with_relations
from releases.services.guards import require_mover, require_no_release
from releases.services.names import require_name
from releases.services.revisions import require_revision
from releases.services.targets import require_candidate
from releases.services.templates import read_plan
from releases.templates import BUILT_IN, template_in_use


@transaction.atomic
def make_release(
    *,
    actor: Actor,
    alias: Alias,
    candidate: Version,
    template: str = "default",
    plan_text: str | None = None,
    reason: str = "",
    expected_revision: int | None = None,
) -> Release:
    """Make the alias's next release, with all its steps. Nothing changes for its callers until it is started.

    The plan is ``plan_text`` or, without it, what the tenant's template says. Quiet when the release that is under way
    is the same person's, with the same plan and candidate. With ``expected_revision`` only while the alias is there.

    Raises:
        InvalidInput: the text is no plan; names what is wrong in it.
        NotFound: the tenant has no such template.
        TargetNotServable: the candidate isn't another approved version of the alias's tenant and base model.
        ReleaseActive: another release of the alias is under way.
        AliasIsSplit: somebody splits the alias by hand.
        RevisionChanged: the alias is at another revision than expected.

    """
    require_in_tenant(actor, Action.MAKE_RELEASE, alias.tenant_id)
    if actor.person_id is None:
        raise PermissionDenied(_("Only a person makes a release."), tenant_id=alias.tenant_id)
    origin, plan = _read(alias, template, plan_text)
    locked = lock_alias(Alias.objects.filter(pk=alias.pk)) or alias
    require_mover(locked, actor)
    require_revision(locked, expected_revision)
    release = _draft(locked, candidate, plan, origin=origin, made_by_id=actor.person_id, reason=reason)
    before = active_release(locked.pk)
    if before is not None and (before.digest, before.candidate_id, before.made_by_id) == (
        release.digest, release.candidate_id, release.made_by_id
    ):  # fmt: skip
        return before
    require_no_release(locked)
    require_name(locked.name, tenant=locked.tenant, adapter=candidate.adapter, alias=locked)
    versions = lock_versions({candidate.pk, locked.version_id})
    require_candidate(locked, versions[candidate.pk], field="candidate")
    if AliasSplit.objects.filter(alias=locked).exists():
        raise AliasIsSplit(_("%(alias)s is split by hand. Clear its split first.") % {"alias": locked})
    release.save(force_insert=True)
    ReleaseStep.objects.bulk_create(
        ReleaseStep(release=release, index=index, kind=kind.value, spec=spec)
        for index, (kind, spec) in enumerate(steps_of(plan))
    )
    events.release_made(actor=actor, release=release)
    return releases_with_relations().get(pk=release.pk)


def waits_for(*, given: int, required: int) -> str:
    """What a release that hasn't started waits for: a record, in English whoever reads it later."""
    missing = required - given
    if missing <= 0:
        return "It waits for somebody to start it."
    one_more = "It waits for the approval of one more person."
    return one_more if missing == 1 else f"It waits for the approvals of {missing} people."


def _read(alias: Alias, name: str, text: str | None) -> tuple[ReleaseTemplate | None, PlanDocument]:
    """The plan, with the template's edition that it is from, unless that is the built-in one."""
    if text is not None:
        return None, read_plan(text, field="plan_text")
    template = template_in_use(tenant=alias.tenant, name=name)
    if template is None:
        raise NotFound(
            _("Tenant %(tenant)s has no release template named %(name)s.") % {"tenant": alias.tenant, "name": name},
            field="template",
        )
    return None if template.number == BUILT_IN else template, plan_of(template.document)


def _draft(
    alias: Alias,
    candidate: Version,
    plan: PlanDocument,
    *,
    origin: ReleaseTemplate | None,
    made_by_id: int,
    reason: str,
) -> Release:
    document = plan.model_dump(mode="json")
    last = Release.objects.filter(alias=alias).aggregate(last=Max("number"))["last"] or 0
    return Release(
        alias=alias,
        number=last + 1,
        stable=alias.version,
        stable_revision=alias.revision,
        candidate=candidate,
        template=origin,
        plan=document,
        digest=release_digest(
            alias=str(alias), stable=alias.version.root_digest, candidate=candidate.root_digest, plan=document
        ),
        reason=reason,
        sentence=waits_for(given=0, required=plan.approvals),
        made_by_id=made_by_id,
        made_at=timezone.now(),
    )
