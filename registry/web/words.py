"""What people call the words of the domain. Pure but for translation."""

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# How a state is to be read at a glance: good, bad, busy, waiting or plain.
KINDS_OF_STATE: Final[dict[str, str]] = {
    "uploading": "busy",
    "validating": "busy",
    "rejected": "bad",
    "candidate": "waiting",
    "approved": "good",
    "yanked": "waiting",
    "revoked": "bad",
    "pending": "waiting",
    "prewarming": "busy",
    "shadowing": "busy",
    "progressing": "busy",
    "paused": "waiting",
    "promoted": "good",
    "aborted": "bad",
    "rolled_back": "bad",
    "delivered": "good",
    "parked": "bad",
}

_WORDS: Final[dict[str, Promise]] = {
    "uploading": _("uploading"),
    "validating": _("validating"),
    "rejected": _("rejected"),
    "candidate": _("candidate"),
    "approved": _("approved"),
    "yanked": _("yanked"),
    "revoked": _("revoked"),
    "pending": _("pending"),
    "prewarming": _("prewarming"),
    "shadowing": _("shadowing"),
    "progressing": _("progressing"),
    "paused": _("paused"),
    "promoted": _("promoted"),
    "aborted": _("aborted"),
    "rolled_back": _("rolled back"),
    "delivered": _("delivered"),
    "parked": _("parked"),
    "viewer": _("viewer"),
    "uploader": _("uploader"),
    "reviewer": _("reviewer"),
    "release_manager": _("release manager"),
    "operator": _("operator"),
    "auditor": _("auditor"),
    "read": _("read"),
    "upload": _("upload"),
    "approve": _("approve"),
    "release": _("release"),
    "operate": _("operate"),
    "audit": _("audit"),
    "admin": _("admin"),
    "infer": _("infer"),
    "person": _("person"),
    "application": _("application"),
}


def word_for(value: str) -> Promise | str:
    """The word; what is not known is shown as it is."""
    return _WORDS.get(str(value), str(value))
