"""What a rollback would do now: read for whoever is asked whether to go back. The services decide again."""

from dataclasses import dataclass

from registry.models import Version
from registry.selectors import versions_with_relations
from releases.history import rollback_target, standing_moves
from releases.models import Alias, Release
from releases.selectors import active_release, alias_history, lost_versions
from releases.states import ENDED_STATES, ReleaseState


@dataclass(frozen=True, slots=True)
class Outlook:
    """What going back would come to.

    Attributes:
        left: the version that would answer nothing more.
        to: the version that would answer everything; None: there is none to go back to.
        ends: the release that is under way and would end with it.

    """

    left: Version
    to: Version | None
    ends: Release | None = None


def outlook_of_alias(alias: Alias) -> Outlook:
    """What ``roll_back_alias`` would do to the alias."""
    active = active_release(alias.pk)
    if active is None:
        return Outlook(left=alias.version, to=_way_back(alias, may_stay=False))
    return Outlook(left=active.candidate, to=_way_back(alias, may_stay=True), ends=active)


def outlook_of_release(release: Release) -> Outlook | None:
    """What ``roll_back_release`` would do; None: nothing, since it is undone already or its alias has moved on."""
    alias = release.alias
    if release.state not in ENDED_STATES:
        return Outlook(left=release.candidate, to=_way_back(alias, may_stay=True), ends=release)
    if release.state != ReleaseState.PROMOTED or not brought_it(release):
        return None
    return Outlook(left=release.candidate, to=_way_back(alias, may_stay=False), ends=active_release(alias.pk))


def brought_it(release: Release) -> bool:
    """Whether it was this release that brought its alias to where it points."""
    return standing_moves(alias_history(release.alias_id))[-1].revision == release.stable_revision + 1


def _way_back(alias: Alias, *, may_stay: bool) -> Version | None:
    lost = lost_versions(alias.pk)
    if may_stay and alias.version_id not in lost:
        return alias.version
    target = rollback_target(alias_history(alias.pk), lost=lost)
    return None if target is None else versions_with_relations().get(pk=target)
