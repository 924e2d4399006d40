"""Two or more real connections doing things at the same moment."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

T = TypeVar("T")


def race(*acts: Callable[[], T]) -> list[T | Exception]:
    """Start all ``acts`` together, each in a thread with its own connection; their results or errors, in order."""
    barrier = threading.Barrier(len(acts))

    def run(act: Callable[[], T]) -> T | Exception:
        try:
            barrier.wait(timeout=10)
            return act()
        except Exception as error:  # noqa: BLE001  the race's loser is a result
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def errors_in(results: Sequence[object]) -> list[Exception]:
    return [result for result in results if isinstance(result, Exception)]
