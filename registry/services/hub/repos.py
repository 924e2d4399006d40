"""A repository of the hub-compatible API: an adapter, or what somebody pushes that will become one."""

from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import InvalidInput, RepoNotFound, WrongState
from registry.hub.names import MAIN, RepoName, parse_repo_name
from registry.models import Adapter, HubDraft, Tenant
from registry.naming import NamingError
from registry.permissions import Action
from registry.selectors import get_tenant


@dataclass(frozen=True, slots=True)
class Repo:
    """``pinned`` is the version in a name like ``tenant/adapter.version``; such a repository is for reading alone."""

    tenant: Tenant
    name: str
    pinned: str | None
    adapter: Adapter | None

    def __str__(self) -> str:
        return f"{self.tenant.name}/{self.name}" + (f".{self.pinned}" if self.pinned else "")


def find_repo(*, actor: Actor, tenant: str, name: str, action: Action = Action.VIEW_TENANT) -> Repo:
    """The repository, if ``actor`` may do ``action`` in it.

    Raises:
        RepoNotFound, NotAMember: there is none that this caller may know of.
        PermissionDenied: it is there, and this is not allowed.

    """
    owner, parsed = get_tenant(actor=actor, name=tenant, action=action), _parse(name)
    adapter = Adapter.objects.select_related("tenant", "base_model").filter(tenant=owner, name=parsed.adapter).first()
    repo = Repo(tenant=owner, name=parsed.adapter, pinned=parsed.version, adapter=adapter)
    if adapter is None and (repo.pinned or not own_drafts(actor=actor, repo=repo).exists()):
        raise RepoNotFound(
            _("Tenant %(tenant)s has no adapter named %(name)s.") % {"tenant": tenant, "name": parsed.adapter},
            field="name",
        )
    return repo


def writable_repo(*, actor: Actor, tenant: str, name: str) -> Repo:
    """The repository, if ``actor`` may push to it. Raises like ``find_repo``, and ``WrongState`` for a version."""
    repo = find_repo(actor=actor, tenant=tenant, name=name, action=Action.UPLOAD_VERSION)
    if repo.pinned:
        raise WrongState(
            _("%(repo)s is a version, which never changes. Push to %(adapter)s.")
            % {"repo": repo, "adapter": f"{repo.tenant.name}/{repo.name}"},
            field="name",
        )
    return repo


def own_drafts(*, actor: Actor, repo: Repo) -> QuerySet[HubDraft]:
    """What the caller has pushed to the repository, by branch."""
    drafts = HubDraft.objects.select_related("head").filter(tenant=repo.tenant, adapter_name=repo.name)
    return drafts.filter(owner_id=actor.person_id).order_by("branch")


def own_draft(*, actor: Actor, repo: Repo, branch: str = MAIN) -> HubDraft | None:
    return own_drafts(actor=actor, repo=repo).filter(branch=branch).first()


def default_tenant(*, actor: Actor) -> str:
    """The tenant of a repository that is named without one: the caller's, if it is only one."""
    names = list(Tenant.objects.filter(pk__in=list(actor.roles)).order_by("name").values_list("name", flat=True)[:2])
    if len(names) != 1:
        raise InvalidInput(_("Say whose repository this is: tenant/adapter."), field="organization")
    return names[0]


def _parse(name: str) -> RepoName:
    try:
        return parse_repo_name(name)
    except NamingError as error:
        raise RepoNotFound(str(error), field="name") from None
