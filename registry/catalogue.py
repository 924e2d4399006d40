"""Reads for the lists and pages of adapters and versions. Each takes the actor and sees only what the actor may see.

Lists go over all tenants that the actor belongs to. Whatever begins a search has an index.
"""

import re
from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import JSONObject

from registry.actors import Actor
from registry.models import (
    Adapter,
    Approval,
    AuditRecord,
    BaseModel,
    Person,
    PipelineSignature,
    Revalidation,
    ValidationReport,
    Version,
    VersionFile,
)
from registry.permissions import Action, require_on_platform
from registry.ports import PORTS, PointedAlias, Use
from registry.reviews import POLICY_OF_VERSION
from registry.selectors import get_tenant, list_inbox, versions_with_relations

# So many adapters that a search names are looked into.
MAX_NAMED: Final = 1000
_DIGEST: Final = re.compile(r"[0-9a-f]{8,64}", re.ASCII)


def search_adapters(*, actor: Actor, tenant: str = "", text: str = "", base_model: str = "") -> QuerySet[Adapter]:
    """Adapters of all tenants of the actor, each with ``newest``: its last version's name, state and time, or None.

    ``text`` is how a name begins, or ``tenant/name``.
    """
    owner, _slash, name = text.strip().rpartition("/")
    adapters = _of_tenants(Adapter.objects.select_related("tenant", "base_model"), actor, "tenant")
    for lookup, wanted in (
        ("tenant__name", tenant),
        ("tenant__name", owner),
        ("name__startswith", name),
        ("base_model__name", base_model),
    ):
        adapters = adapters.filter(**{lookup: wanted}) if wanted else adapters
    versions = Version.objects.filter(adapter=OuterRef("pk")).order_by("-created_at")
    newest = versions.values(shown=JSONObject(name="name", state="state", at="created_at"))[:1]
    found: QuerySet[Adapter] = adapters.annotate(newest=Subquery(newest))
    return found


def search_versions(*, actor: Actor, tenant: str = "", text: str = "", uploader: str = "") -> QuerySet[Version]:
    """Versions of all tenants of the actor.

    ``text`` is how the name of an adapter or a version begins, or a digest of files (8 digits or more), or a whole
    reference such as ``acme/tone@v1``, of which parts may be missing. ``uploader`` is an e-mail address.
    """
    versions = _of_tenants(versions_with_relations(), actor, "adapter__tenant")
    if tenant:
        versions = versions.filter(adapter__tenant__name=tenant)
    if uploader:
        # By key, which has an index: else a page without any hit looks through all versions for one.
        versions = versions.filter(uploader__in=list(Person.objects.filter(email=uploader).values_list("pk", flat=True)))
    return versions.filter(_named(actor, text.strip())) if text.strip() else versions


def _named(actor: Actor, text: str) -> Q:
    line, at, name = text.rpartition("@")
    if at:
        return Q(adapter__in=_adapters_named(actor, line), name__startswith=name)
    if "/" in text:
        return Q(adapter__in=_adapters_named(actor, text))
    named = Q(adapter__in=_adapters_named(actor, text)) | Q(name__startswith=text)
    return named | Q(root_digest__startswith=text) if _DIGEST.fullmatch(text) else named


def _adapters_named(actor: Actor, text: str) -> list[int]:
    """Keys, not a subquery: only so can Postgres join the indexes of what is looked for in several places."""
    return list(search_adapters(actor=actor, text=text).order_by().values_list("pk", flat=True)[:MAX_NAMED])


def list_bases(*, actor: Actor) -> list[str]:
    """The names of base models, to choose one from."""
    require_on_platform(actor, Action.VIEW_PLATFORM)
    return list(BaseModel.objects.order_by("name").values_list("name", flat=True))


def versions_as_shown() -> QuerySet[Version]:
    """Versions with what a page of one shows of itself: policy, signature, and whether it ``is_revalidated`` now."""
    versions = versions_with_relations().select_related(POLICY_OF_VERSION, "signature__key")
    asked = Revalidation.objects.filter(version=OuterRef("pk"), finished_at__isnull=True)
    return versions.annotate(is_revalidated=Exists(asked))


def versions_with_report() -> QuerySet[Version]:
    """As ``versions_as_shown``, with ``newest_report``: the last report as JSON, or None."""
    reports = ValidationReport.objects.filter(version=OuterRef("pk")).order_by("-created_at", "-pk")
    return versions_as_shown().annotate(newest_report=Subquery(reports.values("report")[:1]))


def get_served(*, version: Version, key: UUID) -> Version:
    """A version of the same adapter as one that the caller was given to see, with its newest report."""
    return versions_with_report().get(pk=key, adapter=version.adapter_id)


def list_files(*, versions: Iterable[Version]) -> dict[Any, list[VersionFile]]:
    """The files of versions that the caller was given to see, by their versions' keys, in the order of their paths."""
    found: dict[Any, list[VersionFile]] = {version.pk: [] for version in versions}
    for file in VersionFile.objects.select_related("artifact").filter(version__in=list(found)).order_by("path"):
        found[file.version_id].append(file)
    return found


def list_aliases_of(*, adapters: Iterable[Adapter]) -> dict[int, list[PointedAlias]]:
    """The aliases that point at versions of adapters that the caller was given to see, by the adapters' keys."""
    found: dict[int, list[PointedAlias]] = {adapter.pk: [] for adapter in adapters}
    for alias in PORTS.aliases_of(adapter_ids=list(found)) if found else ():
        found[alias.adapter_id].append(alias)
    return found


def list_uses(*, version: Version) -> tuple[Use, ...]:
    """What aliases do with a version that the caller was given to see."""
    return PORTS.uses_of(version_id=version.pk)


def list_signed_by(*, version: Version) -> list[PipelineSignature]:
    """What pipelines signed of a version that the caller was given to see."""
    return list(PipelineSignature.objects.select_related("key", "attached_by").filter(version=version))


def list_records_of(*, actor: Actor, version: Version) -> QuerySet[AuditRecord]:
    """What the audit log says of the version, to those who may read the log of its tenant."""
    chain = get_tenant(actor=actor, name=version.adapter.tenant.name, action=Action.READ_AUDIT).name
    records = AuditRecord.objects.annotate(object_id=KeyTextTransform("id", "object"))
    return records.filter(object_id=str(version.pk), chain=chain)


def with_approvals(versions: QuerySet[Version]) -> QuerySet[Version]:
    """Read along what ``review_of_listed`` needs beside the policy."""
    approvals = Prefetch("approvals", Approval.objects.select_related("reviewer"))
    return versions.prefetch_related(None).prefetch_related(approvals, "approvals__reviewer__memberships")


def list_waiting(*, actor: Actor) -> QuerySet[Version]:
    """As ``list_inbox``, with no more than ``review_of_listed`` needs."""
    return with_approvals(list_inbox(actor=actor))


def find_next(*, actor: Actor, version: Version, is_backwards: bool = False) -> Version | None:
    """What waits for the actor after (or before) the version, which need not wait itself; the oldest comes first."""
    side, sign = ("lt", "-") if is_backwards else ("gt", "")
    same = Q(created_at=version.created_at, **{f"pk__{side}": version.pk})
    waiting = list_inbox(actor=actor).prefetch_related(None)
    beyond = waiting.filter(Q(**{f"created_at__{side}": version.created_at}) | same)
    return beyond.order_by(f"{sign}created_at", f"{sign}pk").first()


def _of_tenants(found: QuerySet[Any], actor: Actor, path: str) -> QuerySet[Any]:
    require_on_platform(actor, Action.VIEW_PLATFORM)
    return found if actor.is_platform_admin else found.filter(**{f"{path}__in": list(actor.roles)})
