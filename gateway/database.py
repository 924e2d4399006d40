"""Connections to Postgres that are expected to be lost and come back."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

import psycopg

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0

Connection = psycopg.AsyncConnection[tuple[object, ...]]


async def connect(url: str, *, purpose: str) -> Connection:
    """Open a connection in autocommit mode that notices a dead peer within seconds; raises psycopg.Error."""
    return await psycopg.AsyncConnection.connect(
        url,
        autocommit=True,
        connect_timeout=5,
        application_name=f"lorekeeper-gateway-{purpose}",
        keepalives=1,
        keepalives_idle=5,
        keepalives_interval=2,
        keepalives_count=2,
    )


async def keep_alive(session: Callable[[Callable[[], None]], Awaitable[None]], *, purpose: str) -> NoReturn:
    """Run `session` for ever, again after each loss of the database, with a growing pause between tries.

    `session` calls the function that it's given when it works, which makes the next pause short again.
    """
    pause = _FIRST_PAUSE_S

    def works() -> None:
        nonlocal pause
        pause = _FIRST_PAUSE_S

    while True:
        try:
            await session(works)
        except (psycopg.Error, OSError) as error:
            _log.warning("%s: database out of reach, next try in %.1f s: %s", purpose, pause, _reason(error))
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
