"""What there is to say of a version in sentences: its state, and what taking it back would do to whom."""

from collections.abc import Iterable, Sequence
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from registry.models import Version
from registry.ports import Holder, Use
from registry.quorum import Void
from registry.states import VersionState

_OF_STATE: Final[dict[VersionState, Promise]] = {
    VersionState.UPLOADING: gettext_lazy("Its files are on their way. It is checked when the upload has ended."),
    VersionState.VALIDATING: gettext_lazy("It is being checked. This page follows by itself."),
    VersionState.REJECTED: gettext_lazy("It was refused, and will never be served. Its name stays taken."),
    VersionState.CANDIDATE: gettext_lazy("It has passed the checks and waits for people to approve it."),
    VersionState.APPROVED: gettext_lazy("It is approved and signed: aliases may point at it, and nodes may load it."),
    VersionState.YANKED: gettext_lazy("It goes on serving where it serves, but nothing new may be moved to it."),
    VersionState.REVOKED: gettext_lazy("It is served nowhere any more, for good."),
}
_VOIDS: Final[dict[Void, Promise]] = {
    Void.UPLOADER: gettext_lazy("does not count: given by who uploaded it"),
    Void.CHANGED: gettext_lazy("does not count: given to other files or another report"),
    Void.EXPIRED: gettext_lazy("does not count any more: too long ago"),
    Void.NOT_AN_APPROVER: gettext_lazy("does not count: not somebody whom the policy lets approve"),
}


def sentence_of(version: Version) -> Promise:
    """What its state means."""
    return _OF_STATE[VersionState(version.state)]


def word_of_void(void: Void | None) -> Promise | str:
    """Why an approval does not count; empty if it does."""
    return "" if void is None else _VOIDS[void]


def if_yanked(uses: Sequence[Use], holders: Sequence[Holder]) -> tuple[str, ...]:
    """What yanking does, and whom it concerns."""
    said = [_stays_pointing(use) for use in uses if use.kind == "alias"]
    said += [text for use in uses if (text := _ended(use))]
    said.append(_nodes_keep(holders) if holders else _("No node holds it."))
    if not uses:
        said.insert(0, _("No alias uses it."))
    return (*said, _("From then on no alias and no release can be moved to it. It can't be approved again."))


def if_revoked(uses: Sequence[Use], holders: Sequence[Holder]) -> tuple[str, ...]:
    """What revoking does, and whom it concerns."""
    said = [_stops_answering(use) for use in uses if use.kind == "alias"]
    said += [text for use in uses if (text := _ended(use))]
    said.append(_nodes_drop(holders) if holders else _("No node holds it."))
    if not uses:
        said.insert(0, _("No alias uses it."))
    return (*said, _("It can't be undone: this version will never be served again."))


def _stays_pointing(use: Use) -> str:
    return _("The alias %(alias)s points at it%(others)s and goes on answering with it until it is moved.") % {
        "alias": use.alias,
        "others": _others(use),
    }


def _stops_answering(use: Use) -> str:
    return _(
        "The alias %(alias)s points at it%(others)s: its requests are refused (403, version_revoked) from this moment "
        "on, until somebody moves or rolls back the alias."
    ) % {"alias": use.alias, "others": _others(use)}


def _ended(use: Use) -> str:
    """What ends with either withdrawal."""
    facts = {"alias": use.alias, "percent": f"{use.percent:g}", "number": use.release}
    if use.kind == "candidate":
        return _("Release %(number)d of %(alias)s goes to it, and is rolled back.") % facts
    if use.kind == "canary":
        return (
            _("It answers %(percent)s %% of the requests of %(alias)s; its stable version answers them again.") % facts
        )
    if use.kind == "shadow":
        return _("%(percent)s %% of the requests of %(alias)s are mirrored to it; that ends.") % facts
    return ""


def _nodes_keep(holders: Sequence[Holder]) -> str:
    return ngettext(
        "%(count)d node holds it and keeps it: %(names)s.",
        "%(count)d nodes hold it and keep it: %(names)s.",
        len(holders),
    ) % {"count": len(holders), "names": _names(holders)}


def _nodes_drop(holders: Sequence[Holder]) -> str:
    return ngettext(
        "%(count)d node holds it, and unloads it without waiting for requests in flight: %(names)s.",
        "%(count)d nodes hold it, and unload it without waiting for requests in flight: %(names)s.",
        len(holders),
    ) % {"count": len(holders), "names": _names(holders)}


def _names(holders: Iterable[Holder]) -> str:
    return ", ".join(holder.node for holder in holders)


def _others(use: Use) -> str:
    if not use.shared_with:
        return ""
    return _(" (also for %(tenants)s)") % {"tenants": ", ".join(use.shared_with)}
