"""How a release stands, in the reader's language: a sentence from its facts alone. Pure but for translation.

What the controller wrote beside it (``Release.sentence``) is a record and stays in the language it was written in.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from releases.models import Release, ReleaseStep
from releases.states import PauseKind, ReleaseState, StepKind
from releases.web.words import KINDS_OF_STEP, minutes, share_of

_LIVE = frozenset({StepKind.SHADOW, StepKind.CANARY})


def standing_of(release: Release, steps: Sequence[ReleaseStep], *, given: int, now: datetime | None = None) -> str:
    """What it does now or waits for, or how it ended. ``given``: approvals of its plan; without ``now`` no figures."""
    match ReleaseState(release.state):
        case ReleaseState.PENDING:
            return _pending(given, int(release.plan["approvals"]))
        case ReleaseState.PAUSED:
            return _paused(release)
        case ReleaseState.PROMOTED:
            return _("Promoted: %(alias)s points at %(candidate)s.") % _names(release)
        case ReleaseState.ABORTED:
            return _("Aborted: %(alias)s stayed at %(stable)s.") % _names(release)
        case ReleaseState.ROLLED_BACK:
            return _("Rolled back: %(candidate)s answers nothing of it any more.") % _names(release)
        case _:
            return _running(steps, release.step, now)


def _names(release: Release) -> dict[str, str]:
    return {"alias": str(release.alias), "candidate": release.candidate.name, "stable": release.stable.name}


def _pending(given: int, required: int) -> str:
    missing = required - given
    if missing <= 0:
        return _("Ready: it waits for somebody to start it.")
    said = ngettext(
        "It waits for the approval of one more person.", "It waits for the approvals of %(missing)d people.", missing
    )
    return said % {"missing": missing}


def _paused(release: Release) -> str:
    return {
        PauseKind.PERSON: _("Somebody paused it; it waits to be resumed. Requests go on being shared as they are."),
        PauseKind.GATE: _("The step has passed. Its gate waits for somebody to resume the release."),
        PauseKind.HELD: _("The step's longest time is over without a verdict. Resume it, try again, or go back."),
        PauseKind.TROUBLE: _("It is in trouble: the step can't be carried out. Mend it and try again, or go back."),
    }[PauseKind(release.pause_kind)]


def _running(steps: Sequence[ReleaseStep], index: int, now: datetime | None) -> str:
    step = steps[min(index, len(steps) - 1)]
    if step.started_at is None or step.ended_at is not None:
        return _("The next step begins in a moment.")
    if step.kind not in _LIVE or now is None:
        return _("%(step)s is under way.") % {"step": KINDS_OF_STEP[step.kind]}
    taken = int((now - step.started_at) / timedelta(minutes=1))
    return _("%(step)s with %(share)s: %(taken)s of at least %(least)s, %(seen)d of at least %(samples)d requests.") % {
        "step": KINDS_OF_STEP[step.kind],
        "share": share_of(step.spec),
        "taken": minutes(taken),
        "least": minutes(step.spec["min_minutes"]),
        "seen": (step.verdict or {}).get("requests", {}).get("canary", 0),
        "samples": step.spec["min_samples"],
    }
