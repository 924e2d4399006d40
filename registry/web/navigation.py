"""The parts of the site, in the order in which the navigation shows them, and who is shown which."""

from dataclasses import dataclass
from typing import Final

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from registry.permissions import Action
from registry.web.allowing import may
from registry.web.reader import Reader


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the site.

    Attributes:
        title: what it is called.
        route: the name of its first page; addresses below that page's belong to it.
        action: what its first page asks for; None where everybody who is signed in may go.
        in_tenant: its pages are about one tenant.

    """

    title: Promise
    route: str
    action: Action | None
    in_tenant: bool = False


PARTS: Final = (
    Part(_("Home"), "home", None),
    Part(_("Adapters"), "adapters", Action.VIEW_PLATFORM),
    Part(_("Approvals"), "approvals", Action.VIEW_PLATFORM),
    Part(_("Releases"), "releases", Action.VIEW_TENANT, in_tenant=True),
    Part(_("Audit"), "audit", Action.READ_AUDIT, in_tenant=True),
    Part(_("Fleet"), "fleet", Action.VIEW_PLATFORM),
    Part(_("Settings"), "settings", Action.VIEW_PLATFORM),
)


@dataclass(frozen=True, slots=True)
class Link:
    title: Promise
    address: str
    is_here: bool


def parts_of(reader: Reader, path: str) -> list[Link]:
    """The parts that the reader may see, the one that ``path`` belongs to marked."""
    found = [(part, _address_of(part, reader)) for part in PARTS if _is_open(part, reader)]
    here = max((address for _part, address in found if path.startswith(address)), key=len, default="")
    return [Link(part.title, address, address == here) for part, address in found]


def _is_open(part: Part, reader: Reader) -> bool:
    if part.in_tenant and reader.tenant is None:
        return False
    return part.action is None or may(reader.actor, part.action, of=reader.tenant if part.in_tenant else None)


def _address_of(part: Part, reader: Reader) -> str:
    names = {"tenant": reader.tenant.name} if part.in_tenant and reader.tenant else {}
    return reverse(part.route, kwargs=names)
