"""Progress bars for bytes moved, on stderr and only when somebody looks at it."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import progress as bars
from rich.console import Console

from client.cli.output import printable
from client.i18n import _
from client.progress import Action, Progress, SilentProgress

if TYPE_CHECKING:
    from collections.abc import Iterator


class BarProgress:
    """One bar per file, shown from its first byte on."""

    def __init__(self, display: bars.Progress) -> None:
        """Draw on `display`, which the caller starts and stops."""
        self._display = display
        self._lock = threading.Lock()
        self._tasks: dict[tuple[Action, str], bars.TaskID] = {}

    def started(self, action: Action, path: str, size: int) -> None:
        """Show a bar for the file, or set it back."""
        with self._lock:
            if (task := self._tasks.get((action, path))) is not None:
                self._display.reset(task, total=size)
                return
            self._tasks[action, path] = self._display.add_task(printable(path), total=size, verb=_verbs()[action])

    def moved(self, action: Action, path: str, count: int) -> None:
        """Advance the bar."""
        self._display.advance(self._tasks[action, path], count)

    def finished(self, action: Action, path: str) -> None:
        """Fill the bar; a hashed file's bar makes room for its upload."""
        task = self._tasks[action, path]
        if action == "hash":
            self._display.remove_task(task)
        else:
            self._display.update(task, completed=next(t.total for t in self._display.tasks if t.id == task))


@contextmanager
def transfer_progress(*, quiet: bool) -> Iterator[Progress]:
    """Give a progress that draws on stderr if that is a terminal and not `quiet`."""
    if quiet or not sys.stderr.isatty():
        yield SilentProgress()
        return
    columns = (
        bars.TextColumn("{task.fields[verb]}", markup=False),
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        bars.DownloadColumn(),
        bars.TransferSpeedColumn(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True)) as display:
        yield BarProgress(display)


def _verbs() -> dict[Action, str]:
    return {"hash": _("reading"), "upload": _("pushing"), "download": _("pulling")}
