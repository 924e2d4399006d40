"""A sign of life while something runs that may take longer than a lost message may."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from django.db import DatabaseError, connection

logger = logging.getLogger(__name__)
PULSE_S: Final = 10.0


@contextmanager
def heartbeat(alive: Callable[[], None], *, every_s: float = PULSE_S) -> Iterator[None]:
    """Call `alive` from a thread of its own, every so many seconds: loading a base or one slow answer tells nothing.

    It ends with the process, so that a worker that was killed falls silent; one that hangs ends with its task's limit.
    """
    done = Event()
    thread = Thread(target=_beat, args=(alive, done, every_s), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _beat(alive: Callable[[], None], done: Event, every_s: float) -> None:
    while not done.wait(every_s):
        try:
            alive()
        except DatabaseError as error:
            logger.warning("nobody was told that this validation goes on: %s", error)
        finally:
            connection.close()
