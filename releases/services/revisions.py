"""Changes that only hold for the revision of an alias or a release that their caller has seen."""

from typing import Final

from django.utils.translation import gettext as _

from releases.errors import RevisionChanged
from releases.models import Alias, Release

NO_ALIAS_YET: Final = 0


def require_revision(alias: Alias | None, expected: int | None) -> None:
    """Raise ``RevisionChanged`` unless the alias is at that revision; with None any will do."""
    revision = NO_ALIAS_YET if alias is None else alias.revision
    if expected is not None and expected != revision:
        raise RevisionChanged(
            _("The alias is at revision %(is)d, not %(expected)d: somebody moved it. Look at it again.")
            % {"is": revision, "expected": expected},
            field="expected_revision",
        )


def require_release_revision(release: Release, expected: int | None) -> None:
    """Raise ``RevisionChanged`` unless the release is at that revision; with None any will do."""
    if expected is not None and expected != release.revision:
        raise RevisionChanged(
            _("%(release)s is at revision %(is)d, not %(expected)d: it was changed meanwhile. Look at it again.")
            % {"release": release, "is": release.revision, "expected": expected},
            field="expected_revision",
        )
