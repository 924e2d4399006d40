"""Sending what receivers are to be told: one worker at a time, several deliveries at once.

Threads only talk to receivers; whatever is written is written here, one after the other. A receiver that takes its time
holds up nobody but itself: it has a few threads at most, and one while it fails.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings

from cachecontrol.services.leases import give_back_lease, take_lease
from registry.services.webhooks.deliveries import Claim, claim_deliveries, settle_attempt
from registry.services.webhooks.outbox import collect_events
from registry.webhooks.sending import Outcome, Sender

logger = logging.getLogger(__name__)

_THREADS: Final = 16
# After so long nothing new is begun: the next run follows in a second.
_RUN_S: Final = 20.0
# How long a run can last when all that it began last takes as long as it may.
_LEASE: Final = timedelta(seconds=60)
_LOOK_AGAIN_S: Final = 0.5


def deliver_webhooks() -> None:
    """Collect what has happened and send what is due, until nothing is or the run is over."""
    held = take_lease("webhooks", lasts=_LEASE)
    if held is None:
        return
    try:
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="webhook") as threads:
            _Run(threads, Sender(allowed=settings.WEBHOOK_NETWORKS)).go_on_for(_RUN_S)
    finally:
        give_back_lease("webhooks", until=held)


class _Run:
    """What is being sent, by future."""

    def __init__(self, threads: ThreadPoolExecutor, sender: Sender) -> None:
        self._threads = threads
        self._sender = sender
        self._sent: dict[Future[Outcome], Claim] = {}

    def go_on_for(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        ends = clock() + seconds
        while True:
            if clock() < ends:
                collect_events()
                self._begin()
            if not self._sent:
                return
            done, _running = wait(self._sent, timeout=_LOOK_AGAIN_S, return_when=FIRST_COMPLETED)
            for future in done:
                self._settle(future, self._sent.pop(future))

    def _begin(self) -> None:
        busy = Counter[UUID](claim.endpoint_id for claim in self._sent.values())
        for claim in claim_deliveries(most=_THREADS - len(self._sent), busy=busy):
            self._sent[self._threads.submit(self._sender.send, claim.message)] = claim

    def _settle(self, future: Future[Outcome], claim: Claim) -> None:
        """Keep what came of it. What can't be kept now is sent again when its claim is over."""
        try:
            settle_attempt(claim=claim, outcome=future.result())
        except Exception:
            logger.exception("delivery %s is tried again later", claim.delivery_id)
