"""Reads. Each takes the actor and sees only what the actor may see."""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from django.db.models import Exists, F, Func, IntegerField, OuterRef, Q, QuerySet
from django.db.models.fields.json import KeyTransform
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.audit import PLATFORM_CHAIN
from registry.errors import NotAMember, NotFound
from registry.evaluation import EvaluationBrief, Gates, parse_examples
from registry.lineage import Bound
from registry.models import (
    Adapter,
    ApiToken,
    Approval,
    AuditCheckpoint,
    AuditRecord,
    BaseModel,
    BaseModelRevision,
    EvaluationGates,
    EvaluationSet,
    Membership,
    Person,
    PipelineKey,
    PipelineSignature,
    RetentionPolicy,
    Revalidation,
    SigningKey,
    Tenant,
    ValidationReport,
    Version,
    VersionComment,
    WebhookDelivery,
    WebhookEndpoint,
)
from registry.naming import default_alias_name
from registry.permissions import Action, require_in_tenant, require_on_platform
from registry.ports import PORTS, Holder
from registry.quorum import Rules, is_approver
from registry.reports import ProbeReference
from registry.reviews import (
    POLICY_OF_VERSION,
    REVIEWED_WITH,
    policy_of,
    policy_read_with,
    review_of_listed,
    rules_of,
)
from registry.states import Decision, VersionState

# What one answer holds at most of a list that grows without end.
MAX_LISTED: Final = 1000
SHOWN_WITH_VERSION: Final = ("files__artifact", "approvals__reviewer")


def get_tenant(*, actor: Actor, name: str, action: Action = Action.VIEW_TENANT) -> Tenant:
    """The tenant, if ``actor`` may do ``action`` in it. Raises ``NotFound`` or ``PermissionDenied``.

    Who may approve is for the tenant's approval policy to say.
    """
    tenant = Tenant.objects.filter(name=name).first()
    if tenant is None:
        raise NotAMember(_("There is no such tenant, or you are not a member of it."), field="tenant")
    _require_in(tenant, actor, action)
    return tenant


def _require_in(tenant: Tenant, actor: Actor, action: Action) -> None:
    roles = rules_of(policy_of(tenant)).roles if action is Action.APPROVE_VERSION else None
    require_in_tenant(actor, action, tenant.pk, roles=roles)


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


def list_own_tokens(*, actor: Actor) -> QuerySet[ApiToken]:
    """The tokens that speak for the person that ``actor`` is; revoked ones, too."""
    tokens = ApiToken.objects.select_related("tenant", "person")
    return tokens.none() if actor.person_id is None else tokens.filter(person=actor.person_id)


def get_own_token(*, actor: Actor, prefix: str) -> ApiToken:
    token = list_own_tokens(actor=actor).filter(prefix=prefix).first()
    if token is None:
        raise NotFound(_("You have no token with this prefix."), field="prefix")
    return token


def list_tenant_tokens(*, actor: Actor, tenant: str) -> QuerySet[ApiToken]:
    """The tokens that are good in the tenant, its applications' and its people's; revoked ones, too."""
    owner = get_tenant(actor=actor, name=tenant, action=Action.MANAGE_TENANT)
    return ApiToken.objects.select_related("person", "tenant").filter(tenant=owner)


def get_tenant_token(*, actor: Actor, tenant: str, prefix: str) -> ApiToken:
    token = list_tenant_tokens(actor=actor, tenant=tenant).filter(prefix=prefix).first()
    if token is None:
        raise NotFound(_("This tenant has no token with this prefix."), field="prefix")
    return token


def list_people(*, actor: Actor) -> QuerySet[Person]:
    """Everybody with an account, with what they are members of."""
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    return Person.objects.prefetch_related("memberships__tenant")


def list_adapters(*, actor: Actor, tenant: str) -> QuerySet[Adapter]:
    owner = get_tenant(actor=actor, name=tenant)
    return Adapter.objects.select_related("tenant", "base_model").filter(tenant=owner).order_by("name")


def versions_with_relations() -> QuerySet[Version]:
    """Versions with everything that naming them or showing them needs."""
    return Version.objects.select_related(
        "adapter__tenant", "adapter__base_model", "base_revision__base_model", "uploader"
    )


def get_version(
    *,
    actor: Actor,
    tenant: str,
    adapter: str,
    name: str,
    action: Action = Action.VIEW_TENANT,
    among: QuerySet[Version] | None = None,
) -> Version:
    """The version, if ``actor`` may do ``action`` in its tenant; ``among`` says what is read along with it.

    Raises ``NotFound``, which says what there is none of, or ``PermissionDenied``.
    """
    versions = versions_with_relations() if among is None else among
    version = versions.filter(adapter__tenant__name=tenant, adapter__name=adapter, name=name).first()
    if version is None:
        line = get_adapter(actor=actor, tenant=tenant, name=adapter, action=action)
        raise NotFound(
            _("Adapter %(adapter)s has no version %(name)s.") % {"adapter": line, "name": name}, field="version"
        )
    _require_in(version.adapter.tenant, actor, action)
    return version


def get_version_by_id(*, version_id: UUID) -> Version:
    """For parts of the system that were given an id by the registry itself."""
    version = versions_with_relations().filter(pk=version_id).first()
    if version is None:
        raise NotFound(_("There is no version with this id."), field="version_id")
    return version


def list_versions(*, actor: Actor, tenant: str, adapter: str | None = None) -> QuerySet[Version]:
    """The adapter's versions, or the whole tenant's, with all that showing them needs."""
    versions = versions_with_relations().prefetch_related(*SHOWN_WITH_VERSION)
    if adapter is None:
        return versions.filter(adapter__tenant=get_tenant(actor=actor, name=tenant))
    return versions.filter(adapter=get_adapter(actor=actor, tenant=tenant, name=adapter))


def narrow_versions(
    versions: QuerySet[Version],
    *,
    lineage: Mapping[str, str] | None = None,
    bounds: Iterable[Bound] = (),
    **lookups: str,
) -> QuerySet[Version]:
    """Those that the lookups find, whose lineage holds exactly these entries, and whose metrics keep these bounds."""
    versions = versions.filter(**lookups)
    if lineage:
        versions = versions.filter(lineage__contains=dict(lineage))
    for number, bound in enumerate(bounds):
        # A version without the metric has nothing to compare, and is left out.
        metric = KeyTransform(bound.metric, KeyTransform("metrics", "lineage"))
        versions = versions.annotate(**{f"metric_{number}": metric})
        versions = versions.filter(**{f"metric_{number}__{bound.comparison}": bound.value})
    return versions


def list_inbox(*, actor: Actor) -> QuerySet[Version]:
    """The candidates that the actor can approve now, in all tenants, read along for ``review_of_listed``.

    Those are the ones the actor has not approved yet, and those that have enough approvals since the policy became
    laxer: they wait for one of the approvers to say it again.
    """
    require_on_platform(actor, Action.VIEW_PLATFORM)
    shown = versions_with_relations().select_related(POLICY_OF_VERSION)
    shown = shown.prefetch_related(*SHOWN_WITH_VERSION, REVIEWED_WITH)
    open_to_approval = Q(adapter__tenant__require_pipeline_signature=False) | Exists(_trusted_signature())
    candidates = shown.filter(open_to_approval, state=VersionState.CANDIDATE.value, purged_at__isnull=True)
    candidates = candidates.exclude(uploader_id=actor.person_id)
    waiting, standing = Q(pk__in=[]), Q(pk__in=[])
    for tenant in Tenant.objects.select_related("approval_policy").filter(pk__in=list(actor.roles)):
        rules = rules_of(policy_read_with(tenant))
        if is_approver(rules, person=actor.id, roles=actor.roles[tenant.pk]):
            said = Exists(_standing_word(actor, rules))
            waiting |= Q(~said, adapter__tenant=tenant)
            standing |= Q(said, adapter__tenant=tenant)
    judged = candidates.filter(standing).prefetch_related(None).prefetch_related(REVIEWED_WITH)
    complete = [each.pk for each in judged if review_of_listed(each).standing.met]
    return candidates.filter(waiting | Q(pk__in=complete))


def list_holders(*, version: Version) -> tuple[Holder, ...]:
    """The nodes that still hold a version that the caller was given to see."""
    return PORTS.holders_of(version_id=version.pk)


def list_comments(*, version: Version) -> QuerySet[VersionComment]:
    """What was said of a version that the caller was given to see."""
    return VersionComment.objects.select_related("author").filter(version=version)


def get_retention(*, actor: Actor, tenant: str, adapter: str) -> RetentionPolicy:
    line = get_adapter(actor=actor, tenant=tenant, name=adapter)
    policy = RetentionPolicy.objects.select_related("adapter__tenant").filter(adapter=line).first()
    if policy is None:
        raise NotFound(_("%(adapter)s has no retention policy: it keeps everything.") % {"adapter": line})
    return policy


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
    return SigningKey.objects.order_by("valid_from", "pk")


def list_pipeline_keys(*, actor: Actor, tenant: str) -> QuerySet[PipelineKey]:
    owner = get_tenant(actor=actor, name=tenant)
    return PipelineKey.objects.select_related("tenant").filter(tenant=owner)


def list_pipeline_signatures(*, version: Version) -> QuerySet[PipelineSignature]:
    """What pipelines signed of a version that the actor was given already."""
    return PipelineSignature.objects.select_related("key", "attached_by").filter(version=version)


def list_audit(*, actor: Actor, tenant: str | None = None) -> QuerySet[AuditRecord]:
    """The records of a tenant's chain, or the platform's."""
    return AuditRecord.objects.filter(chain=_readable_chain(actor, tenant)).order_by("seq")


def list_checkpoints(*, actor: Actor, tenant: str | None = None) -> QuerySet[AuditCheckpoint]:
    """Where the signed checkpoints of a tenant's chain lie, or of the platform's."""
    return AuditCheckpoint.objects.filter(chain=_readable_chain(actor, tenant))


def get_checkpoint(*, actor: Actor, tenant: str | None = None, seq: int) -> AuditCheckpoint:
    """The newest checkpoint that speaks of this record."""
    found = list_checkpoints(actor=actor, tenant=tenant).filter(seq=seq).order_by("-pk").first()
    if found is None:
        raise NotFound(_("There is no checkpoint at this record."), field="seq")
    return found


def _readable_chain(actor: Actor, tenant: str | None) -> str:
    if tenant is None:
        require_on_platform(actor, Action.READ_PLATFORM_AUDIT)
        return PLATFORM_CHAIN
    return get_tenant(actor=actor, name=tenant, action=Action.READ_AUDIT).name


def list_evaluation_sets(*, actor: Actor, tenant: str) -> QuerySet[EvaluationSet]:
    """The tenant's sets without their examples, which can be megabytes each; ``count`` is how many they have."""
    owner = get_tenant(actor=actor, name=tenant)
    count = Func(F("examples"), function="jsonb_array_length", output_field=IntegerField())
    sets = EvaluationSet.objects.select_related("tenant", "adapter").filter(tenant=owner)
    return sets.annotate(count=count).defer("examples")


def get_evaluation_set(*, actor: Actor, tenant: str, name: str) -> EvaluationSet:
    found = list_evaluation_sets(actor=actor, tenant=tenant).defer(None).filter(name=name).first()
    if found is None:
        raise NotFound(_("There is no evaluation set named %(name)s.") % {"name": name}, field="name")
    return found


def get_evaluation_gates(*, actor: Actor, tenant: str) -> Gates:
    """The tenant's gates; all open when none was ever set."""
    return _gates_of(get_tenant(actor=actor, name=tenant).pk)


def brief_evaluation(*, version: Version) -> EvaluationBrief:
    """What a worker evaluates ``version`` on: the set for its adapter or else for the whole tenant, and the gates."""
    line = version.adapter
    sets = EvaluationSet.objects.filter(Q(adapter=line) | Q(adapter__isnull=True), tenant=line.tenant)
    chosen = sets.order_by(F("adapter").asc(nulls_last=True)).first()
    served = main_target(line, PORTS.alias_targets(adapter_id=line.pk))
    return EvaluationBrief(
        set_name="" if chosen is None else chosen.name,
        examples=() if chosen is None else parse_examples(chosen.examples),
        gates=_gates_of(line.tenant_id),
        current_version_id=None if served == version.pk else served,
    )


def main_target(adapter: Adapter, targets: Mapping[str, UUID]) -> UUID | None:
    """The version in use, of what each alias of the adapter points at: its default's."""
    return targets.get(default_alias_name(adapter.name))


def list_webhooks(*, actor: Actor, tenant: str | None) -> QuerySet[WebhookEndpoint]:
    """The tenant's receivers of events, or without a tenant the platform's."""
    if tenant is None:
        require_on_platform(actor, Action.MANAGE_PLATFORM)
        owner = None
    else:
        owner = get_tenant(actor=actor, name=tenant, action=Action.MANAGE_TENANT)
    return WebhookEndpoint.objects.select_related("tenant").filter(tenant=owner)


def get_webhook(*, actor: Actor, tenant: str | None, name: str) -> WebhookEndpoint:
    found = list_webhooks(actor=actor, tenant=tenant).filter(name=name).first()
    if found is None:
        raise NotFound(_("There is no webhook named %(name)s.") % {"name": name}, field="webhook")
    return found


def list_deliveries(*, endpoint: WebhookEndpoint) -> QuerySet[WebhookDelivery]:
    """What was sent to a receiver that the caller was given to see, with its attempts and without the bodies."""
    sent = WebhookDelivery.objects.select_related("endpoint__tenant").prefetch_related("attempts")
    return sent.filter(endpoint=endpoint).defer("body")


def get_delivery(*, endpoint: WebhookEndpoint, number: int) -> WebhookDelivery:
    found = list_deliveries(endpoint=endpoint).defer(None).filter(pk=number).first()
    if found is None:
        raise NotFound(_("There is no such delivery to this webhook."), field="delivery")
    return found


def list_reports(*, actor: Actor, tenant: str, adapter: str, version: str) -> QuerySet[ValidationReport]:
    """The version's reports without their contents; ``defer(None)`` brings those along."""
    found = get_version(actor=actor, tenant=tenant, adapter=adapter, name=version)
    reports = ValidationReport.objects.select_related("version").filter(version=found)
    return reports.defer("report", "reference")


def list_revalidations(*, actor: Actor, tenant: str, adapter: str, version: str) -> QuerySet[Revalidation]:
    found = get_version(actor=actor, tenant=tenant, adapter=adapter, name=version)
    asked = Revalidation.objects.select_related("report").filter(version=found)
    return asked.defer("report__report", "report__reference")


def probe_reference(*, version_id: UUID) -> ProbeReference | None:
    """How the version read a fixed text when it was run last; None if it never was."""
    reports = ValidationReport.objects.filter(version_id=version_id, reference__isnull=False)
    kept = reports.values_list("reference", flat=True).first()
    return None if kept is None else ProbeReference.from_json(kept)


def _trusted_signature() -> QuerySet[PipelineSignature]:
    """What pipelines signed of the outer version with keys that are still trusted."""
    return PipelineSignature.objects.filter(version=OuterRef("pk"), key__revoked_at__isnull=True)


def _standing_word(actor: Actor, rules: Rules) -> QuerySet[Approval]:
    """The actor's approval of what the outer version is now, unless it is too old to count."""
    words = Approval.objects.filter(
        version=OuterRef("pk"),
        reviewer_id=actor.person_id,
        decision=Decision.APPROVED.value,
        root_digest=OuterRef("root_digest"),
        validation_digest=OuterRef("validation_digest"),
    )
    return words if rules.validity is None else words.filter(created_at__gt=timezone.now() - rules.validity)


def _gates_of(tenant_id: int) -> Gates:
    kept = EvaluationGates.objects.filter(tenant_id=tenant_id).first()
    return Gates() if kept is None else Gates.from_json(kept.gates)
