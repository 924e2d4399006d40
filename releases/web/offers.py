"""Which verbs a release takes as it is now; whether the reader may is asked for each button."""

from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from registry.permissions import Action
from releases.models import Release
from releases.states import RUNNING_STATES, PauseKind, ReleaseState


@dataclass(frozen=True, slots=True)
class Verb:
    """A button: what it says, the page that it leads to, and the action that this page asks for."""

    label: Promise
    route: str
    action: Action
    look: str = ""


_START: Final = Verb(_("Start"), "release_start", Action.START_RELEASE, "primary")
_PAUSE: Final = Verb(_("Pause"), "release_pause", Action.STEER_RELEASE)
_RESUME: Final = Verb(_("Resume"), "release_resume", Action.STEER_RELEASE, "primary")
_RETRY: Final = Verb(_("Try again"), "release_retry", Action.STEER_RELEASE)
_PROMOTE: Final = Verb(_("Promote now"), "release_promote", Action.PROMOTE_RELEASE)
_ABORT: Final = Verb(_("Abort"), "release_abort", Action.STEER_RELEASE)
_WAYS_ON: Final = {
    PauseKind.PERSON: (_RESUME, _RETRY),
    PauseKind.GATE: (_RESUME,),
    PauseKind.HELD: (_RESUME, _RETRY),
    PauseKind.TROUBLE: (_RETRY,),
}


def verbs_of(release: Release, *, given: int) -> tuple[Verb, ...]:
    """The verbs; ``given`` is how many have approved it."""
    if release.state == ReleaseState.PENDING:
        is_approved = given >= int(release.plan["approvals"])
        return (_START, _PROMOTE, _ABORT) if is_approved else (_ABORT,)
    if release.state == ReleaseState.PAUSED:
        return (*_WAYS_ON[PauseKind(release.pause_kind)], _PROMOTE, _ABORT)
    return (_PAUSE, _PROMOTE, _ABORT) if release.state in RUNNING_STATES else ()
