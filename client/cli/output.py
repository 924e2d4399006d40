"""What a command prints: one JSON document or text for people on stdout; progress and errors on stderr."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from client.i18n import _

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from client.errors import LorekeeperError

_KEPT_CONTROLS = "\n\t"
_PIPED_WIDTH = 10_000


def printable(text: object) -> str:
    """Return text without control characters: what others wrote must not steer this terminal."""
    return "".join(char for char in str(text) if char.isprintable() or char in _KEPT_CONTROLS)


class Output:
    """Prints results in the form that was asked for."""

    def __init__(self, *, json_mode: bool) -> None:
        """Print JSON if `json_mode`, else text."""
        self.json_mode = json_mode

    def document(self, data: object) -> None:
        """Print the one JSON document; nothing in text mode."""
        if self.json_mode:
            click.echo(json.dumps(plain(data), indent=2, ensure_ascii=not _writes_unicode()))

    def line(self, text: str) -> None:
        """Print a line for people; nothing in JSON mode."""
        if not self.json_mode:
            click.echo(printable(text))

    def note(self, text: str) -> None:
        """Print a line for people on stderr; nothing in JSON mode."""
        if not self.json_mode:
            click.echo(printable(text), err=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table for people; nothing in JSON mode."""
        if self.json_mode:
            return
        grid = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            grid.add_column(column, overflow="fold")
        shown = 0
        for row in rows:
            grid.add_row(*(Text(_cell(value)) for value in row))
            shown += 1
        if shown:
            self._print(grid)
        else:
            self.note(_("Nothing there yet."))

    def fields(self, pairs: Iterable[tuple[str, object]]) -> None:
        """Print names and values for people, one a line; nothing in JSON mode."""
        if self.json_mode:
            return
        grid = Table(box=None, pad_edge=False, show_header=False)
        grid.add_column(style="bold")
        grid.add_column(overflow="fold")
        for name, value in pairs:
            grid.add_row(Text(name), Text(_cell(value)))
        self._print(grid)

    def error(self, error: LorekeeperError) -> None:
        """Print an error: a sentence on stderr, or with JSON an object on stdout."""
        if self.json_mode:
            self.document({"error": error.to_json()})
        else:
            sentence = " ".join(part for part in (str(error), error.hint) if part)
            click.echo(_("Error: {sentence}").format(sentence=printable(sentence)), err=True)

    def _print(self, grid: Table) -> None:
        """Draw on a terminal in its width; into a pipe without wrapping and without blanks at line ends."""
        if sys.stdout.isatty():
            Console(highlight=False).print(grid)
            return
        console = Console(width=_PIPED_WIDTH, highlight=False, file=io.StringIO())
        with console.capture() as captured:
            console.print(grid)
        for line in captured.get().splitlines():
            click.echo(line.rstrip())


def plain(data: object) -> object:
    """Return dataclasses, tuples and paths as what JSON has."""
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        return {field.name: plain(getattr(data, field.name)) for field in dataclasses.fields(data)}
    if isinstance(data, dict):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain(value) for value in data]
    return os.fspath(data) if isinstance(data, Path) else data


def who(value: object) -> str:
    """Return a person or actor as text, from a name or an object with `name`, `email` or `id`."""
    if isinstance(value, dict):
        return str(value.get("name") or value.get("email") or value.get("id") or "")
    return str(value or "")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return ", ".join(printable(item) for item in value)
    return printable(value)


def escape_what_cannot_be_written() -> None:
    """Let standard output and error escape a character that their encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _writes_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
