"""Having a pool planned soon because something about it has changed; the plan of every 15 s does it too, only later."""

from datetime import timedelta
from functools import partial
from typing import Final

from django.db import transaction

from cachecontrol.services.leases import take_lease
from registry import dispatch

# Changes that come together, as when a whole rack is lost, are one: whoever is first waits so long for the others.
_GATHERED: Final = timedelta(seconds=0.25)


def replan_soon(digest: str) -> None:
    """Have the pool planned a moment after the commit, once for all who ask meanwhile.

    The message leaves after the change, so the plan sees the change; if it is lost, the next sweep's plan does.
    """
    transaction.on_commit(partial(_ask_once, digest), robust=True)


def _ask_once(digest: str) -> None:
    if take_lease(f"replan {digest}", lasts=_GATHERED):
        dispatch.nudge(dispatch.REPLAN_POOL, after_s=_GATHERED.total_seconds(), pool=digest)
