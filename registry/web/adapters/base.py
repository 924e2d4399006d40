"""What every page of one version begins with: the version, and the tabs between its pages."""

from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from registry.catalogue.versions import (
    versions_as_shown,
)
from registry.models import Version
from registry.permissions import Action
from registry.selectors import get_version
from registry.states import VersionState
from registry.web.allowing import may
from registry.web.page import Facts, Page

IN_PROGRESS: Final = frozenset({VersionState.UPLOADING, VersionState.VALIDATING})
_TABS: Final[tuple[tuple[str, Promise, Action], ...]] = (
    ("version", _("Overview"), Action.VIEW_TENANT),
    ("version_report", _("Validation"), Action.VIEW_TENANT),
    ("version_use", _("Use"), Action.VIEW_TENANT),
    ("version_history", _("History"), Action.READ_AUDIT),
)


@dataclass(frozen=True, slots=True)
class Tab:
    title: Promise
    address: str
    is_here: bool


class OfVersion(Page):
    """A page whose address names a version."""

    def version_as(self, action: Action, among: QuerySet[Version] | None = None) -> Version:
        """The version in the address, if the reader may do ``action``."""
        names = self.kwargs
        return get_version(
            actor=self.actor,
            tenant=names["tenant"],
            adapter=names["adapter"],
            name=names["version"],
            action=action,
            among=versions_as_shown() if among is None else among,
        )

    def tabs_of(self, version: Version) -> list[Tab]:
        """The pages of the version that the reader may see, this one marked."""
        here = self.request.resolver_match.url_name if self.request.resolver_match else ""
        allowed = [tab for tab in _TABS if may(self.actor, tab[2], of=version)]
        return [Tab(title, address_of(version, name), name == here) for name, title, _action in allowed]

    def facts_of(self, version: Version) -> Facts:
        """What the head of each page of a version shows."""
        return {
            "version": version,
            "adapter": version.adapter,
            "tabs": self.tabs_of(version),
            "is_busy": is_busy(version),
        }


def address_of(version: Version, page: str = "version") -> str:
    """The address of a page about the version, by the page's name."""
    names = {"tenant": version.adapter.tenant.name, "adapter": version.adapter.name, "version": version.name}
    return reverse(page, kwargs=names)


def is_busy(version: Version) -> bool:
    """Whether it changes by itself, so that its page asks for itself again."""
    return version.state in IN_PROGRESS or bool(vars(version).get("is_revalidated"))
