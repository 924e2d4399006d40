"""What the demo prints: each step as it happens, its findings, what was measured, and how it ended."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from deploy.demo.measure import Measurement
from deploy.demo.voices import NO_VOICE

_LOG_WIDTH = 160
_VOICE_STYLES = {"warm": "magenta", "brisk": "cyan", NO_VOICE: "dim"}


class Screen:
    """Prints to one console. Text from elsewhere is shown as it is, never read as markup."""

    def __init__(self, console: Console | None = None) -> None:
        """Print to `console`, by default the standard output: as wide as the terminal, or wide enough for a log."""
        self._console = console or Console(highlight=False, width=None if sys.stdout.isatty() else _LOG_WIDTH)

    @contextmanager
    def step(self, number: int, total: int, title: str) -> Iterator[None]:
        """Print a step's heading at once; on a terminal a spinner shows that it goes on."""
        self._console.print(f"\n[bold]\\[{number}/{total}] {escape(title)}[/bold]")
        with self._console.status("", spinner="dots"):
            yield

    def did(self, text: str) -> None:
        """Print one thing that was done."""
        self._console.print(f"  [green]✓[/green] {escape(text)}")

    def refused(self, what: str, reason: str) -> None:
        """Print one thing that was refused, as it should be, and why."""
        self._console.print(f"  [red]✗[/red] {escape(what)}: refused [dim]({escape(reason)})[/dim]")

    def command(self, person: str, words: Sequence[str]) -> None:
        """Print a command that a person gives."""
        self._console.print(f"  [dim]{escape(person)} $ lorekeeper {escape(' '.join(words))}[/dim]")

    def said(self, question: str, voice: str, text: str) -> None:
        """Print a question and the answer in the colour of its voice."""
        style = _VOICE_STYLES.get(voice, "dim")
        self._console.print(f"  [dim]?[/dim] {escape(question)}")
        self._console.print(f"  [{style}]{voice}:[/{style}] {escape(text)}")

    def measured(self, *measurements: Measurement) -> None:
        """Print numbers on one line."""
        self._console.print("  [yellow]⏱[/yellow] " + escape(" · ".join(str(one) for one in measurements)))

    def rows(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table."""
        table = Table(box=None, padding=(0, 2, 0, 2), header_style="dim")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(escape(cell) for cell in row))
        self._console.print(table)

    def summary(self, measurements: Sequence[Measurement]) -> None:
        """Print all that was measured, once more."""
        self._console.print("\n[bold]Measured[/bold]")
        for one in measurements:
            self._console.print(f"  {escape(str(one))}")

    def line(self, text: str = "") -> None:
        """Print a plain line, unwrapped: scripts look for how a run ends."""
        self._console.print(escape(text), soft_wrap=True)
