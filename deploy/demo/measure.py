"""What the demo measures: named times, and the time that a rollback takes to be heard."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from deploy.demo.command_line import Answer
from deploy.demo.conversation import Reply

_HEARD_WITHIN_S = 30.0
# Below this a tenth of a millisecond is worth showing, above it it is noise.
_FINE_MS = 10.0


class RollbackUnheardError(Exception):
    """No answer of the version before came within the time allowed."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number with its unit and what it is of."""

    name: str
    value: float
    unit: str = "ms"

    def __str__(self) -> str:
        """Return `name 12.3 unit`, with a decimal only where it means something."""
        return f"{self.name} {shown_number(self.value, unit=self.unit)} {self.unit}"


def shown_number(value: float, *, unit: str = "ms") -> str:
    """Return the number as it is shown: whole counts, one decimal for seconds and for a few milliseconds."""
    fine = unit == "s" or (unit == "ms" and value < _FINE_MS)
    return f"{value:,.1f}" if fine else f"{value:,.0f}"


@dataclass(frozen=True, slots=True)
class RollbackTiming:
    """How fast a rollback was heard (ms): from the command's start, and from the commit, to the old version's token."""

    from_command_ms: float
    from_commit_ms: float
    other_answers: int
    reply: Reply


def time_rollback(
    *, begin: Callable[[], Callable[[], Answer]], ask: Callable[[], Reply], is_old: Callable[[Reply], bool]
) -> RollbackTiming:
    """Start a rollback by `begin`, ask until an answer is the old version's, then collect the alias from the command.

    `begin` starts the command and returns a function that waits for it and returns the alias as it then is. Asking does
    not wait for the command, as no application does. Raises RollbackUnheardError after 30 s.
    """
    wall_offset = time.time() - time.monotonic()
    began = time.monotonic()
    finish = begin()
    others = 0
    reply = ask()
    while not is_old(reply):
        others += 1
        if time.monotonic() - began > _HEARD_WITHIN_S:
            raise RollbackUnheardError(f"still {reply.version} after {_HEARD_WITHIN_S:.0f} s")
        reply = ask()
    committed = datetime.fromisoformat(str(finish()["updated_at"])).timestamp() - wall_offset
    return RollbackTiming(
        from_command_ms=(reply.first_token_at - began) * 1000,
        from_commit_ms=(reply.first_token_at - committed) * 1000,
        other_answers=others,
        reply=reply,
    )
