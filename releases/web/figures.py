"""A step's verdict as pages show it: a row a metric, and small charts of its course. Pure but for translation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _

from registry.web.charts import Chart, ChartLine
from releases.web.words import LOOKS_OF_OUTCOME, METRICS, OUTCOMES

_WHOLE_NUMBERS_FROM: Final = 1000
_NOTHING: Final = "–"  # noqa: RUF001  a dash for what was not measured


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric of a verdict, its numbers written out with their units.

    Attributes:
        name: what it is called.
        canary: the candidate's value; ``stable``: the other's.
        difference: canary less stable.
        interval: what the data leave open.
        outcome: the word for its verdict, shown as a badge of the kind ``look``.
        holds: the whole can't pass before this has changed.
        sentence: what came of it and why, as it was kept.
        tested: what was asked, and how surely, as it was kept.

    """

    name: Promise | str
    canary: str
    stable: str
    difference: str
    interval: str
    outcome: Promise | str
    look: str
    holds: bool
    sentence: str
    tested: str


def metric_rows(verdict: Mapping[str, Any] | None) -> list[MetricRow]:
    """The rows of a verdict as ``releases.steering.records`` keeps it; none where nothing was judged yet."""
    return [_row(metric) for metric in (verdict or {}).get("metrics", ())]


def _row(metric: Mapping[str, Any]) -> MetricRow:
    unit = str(metric["unit"])
    outcome = str(metric["outcome"])
    return MetricRow(
        name=METRICS.get(metric["metric"], metric["metric"]),
        canary=_number(metric["canary"], unit),
        stable=_number(metric["stable"], unit),
        difference=_number(metric["difference"], _unit_of_difference(unit), signed=True),
        interval=_interval(metric["interval"], _unit_of_difference(unit)),
        outcome=OUTCOMES.get(outcome, outcome),
        look=LOOKS_OF_OUTCOME.get(outcome, "plain"),
        holds=bool(metric["holds"]),
        sentence=str(metric["sentence"]),
        tested=str(metric["tested"]),
    )


def _unit_of_difference(unit: str) -> str:
    return _("points") if unit == "%" else unit


def _number(value: float | None, unit: str, *, signed: bool = False) -> str:
    return _NOTHING if value is None else f"{_short(value, signed=signed)} {unit}"


def _interval(interval: Mapping[str, float | None] | None, unit: str) -> str:
    low, high = (interval or {}).get("low"), (interval or {}).get("high")
    if low is None and high is None:
        return _("open")
    if low is None:
        return f"≤ {_number(high, unit, signed=True)}"
    if high is None:
        return f"≥ {_number(low, unit, signed=True)}"
    return _("%(low)s to %(high)s") % {"low": _short(low, signed=True), "high": _number(high, unit, signed=True)}


def _short(value: float, *, signed: bool = False) -> str:
    """Three digits, and none that say nothing."""
    sign = "+" if signed and value > 0 else ""
    digits = f"{value:.0f}" if abs(value) >= _WHOLE_NUMBERS_FROM else f"{value:.3g}"
    return f"{sign}{digits}".replace("-", "\N{MINUS SIGN}")


def charts_of(course: Sequence[Mapping[str, Any]] | None) -> list[Chart]:
    """Charts of what was measured, for two points and more (one is no course)."""
    points = list(course or ())
    if len(points) < 2:  # noqa: PLR2004  one point is no course
        return []
    kinds = (("errors", _("Errors"), "%"), ("ttft", _("First token, p95"), "ms"), ("total", _("Answer, p95"), "ms"))
    found = [_chart(title, unit, [(point["at"], point[name]) for point in points]) for name, title, unit in kinds]
    return [*(chart for chart in found if chart is not None), *_agreement(points)]


def _chart(title: str, unit: str, rows: Sequence[tuple[str, Sequence[float | None]]]) -> Chart | None:
    if not any(value is not None for _at, values in rows for value in values):
        return None
    return Chart(
        title=f"{title} ({unit})",
        unit=unit,
        lines=(ChartLine(_("Canary"), "candidate"), ChartLine(_("Stable"), "stable")),
        rows=tuple((datetime.fromisoformat(at), tuple(values)) for at, values in rows),
    )


def _agreement(points: Sequence[Mapping[str, Any]]) -> list[Chart]:
    if all(point["agreement"] is None for point in points):
        return []
    rows = tuple((datetime.fromisoformat(point["at"]), (point["agreement"],)) for point in points)
    return [
        Chart(title=_("Shadow agreement (%)"), unit="%", lines=(ChartLine(_("Agreement"), "candidate"),), rows=rows)
    ]
