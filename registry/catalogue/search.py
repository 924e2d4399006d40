"""Searches among the adapters and versions of all tenants of an actor. Whatever begins a search has an index."""

import re
from typing import Any, Final

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import JSONObject

from registry.actors import Actor
from registry.models import Adapter, BaseModel, Person, Version
from registry.permissions import Action, require_on_platform
from registry.selectors import versions_with_relations

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
        versions = versions.filter(
            uploader__in=list(Person.objects.filter(email=uploader).values_list("pk", flat=True))
        )
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


def _of_tenants(found: QuerySet[Any], actor: Actor, path: str) -> QuerySet[Any]:
    require_on_platform(actor, Action.VIEW_PLATFORM)
    return found if actor.is_platform_admin else found.filter(**{f"{path}__in": list(actor.roles)})
