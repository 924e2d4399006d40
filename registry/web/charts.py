"""What a chart shows; the page has it as a table, from which ``static/js/charts.js`` draws. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Kind = Literal["line", "bar"]
# Which colour a line has: candidates and stable versions are the same everywhere.
Role = Literal["stable", "candidate", "plain", "before"]


@dataclass(frozen=True, slots=True)
class ChartLine:
    title: str
    role: Role = "plain"


@dataclass(frozen=True, slots=True)
class Chart:
    """A course over time.

    Attributes:
        title: what is shown.
        unit: of the values, such as ms or %.
        lines: what there is to compare, at most four.
        rows: a time with one value for each line; None where nothing was measured.
        kind: how it is drawn.

    """

    title: str
    unit: str
    lines: tuple[ChartLine, ...]
    rows: tuple[tuple[datetime, tuple[float | None, ...]], ...]
    kind: Kind = "line"
