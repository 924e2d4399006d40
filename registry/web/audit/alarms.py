"""What is wrong with a chain, for people."""

from django.utils.translation import gettext as _

from registry.services.audit.checks import CUT_OFF, NOT_SIGNED, REPLACED


def alarm_of(finding: str, broken_at: int | None) -> str:
    """What is wrong with the chain, as a sentence; empty as long as nothing is."""
    sentences = {
        CUT_OFF: _("Records are missing: there is nothing at number %(seq)s, and there was."),
        REPLACED: _("Record %(seq)s is not the one that was signed: it was replaced, or one before it was."),
        NOT_SIGNED: _(
            "The checkpoint of record %(seq)s is missing in the store, or its signature does not hold: it may have been"
            " forged or removed."
        ),
    }
    other = _("Record %(seq)s does not fit the one before it, or its hash does not cover what it says: it was changed.")
    return sentences.get(finding, other) % {"seq": broken_at} if finding else ""
