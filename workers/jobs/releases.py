"""The controller of releases: every release that is under way, and how long rollbacks took."""

import logging
from typing import Final
from uuid import UUID

from releases.services.departures import settle_departures
from releases.services.steering import releases_to_steer, steer_release

logger = logging.getLogger(__name__)

# More changes than this in a row are left to the next pass.
_CHANGES: Final = 8


def steer_all() -> None:
    """One pass. One release's trouble stops no other."""
    for release_id in releases_to_steer():
        try:
            steer_onwards(release_id)
        except Exception:
            logger.exception("release %s is steered again by the next pass", release_id)
    try:
        settle_departures()
    except Exception:
        logger.exception("rollbacks are looked at again by the next pass")


def steer_onwards(release_id: UUID) -> None:
    """Make the changes of one release that are due now."""
    for _change in range(_CHANGES):
        if not steer_release(release_id=release_id):
            return
