"""What a candidate changes against the version that serves now. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from registry.web.adapters.reports import evaluated_on, facts_of, metric_rows, metrics_of, verdict, verdicts_by_check

Report = Mapping[str, Any]
What = Literal["same", "changed", "added", "removed"]

_FACTS: Final[tuple[tuple[str, Promise], ...]] = (
    ("declared_rank", _("Rank as configured (r)")),
    ("alpha", _("Alpha (lora_alpha)")),
    ("target_modules", _("Target modules")),
    ("module_count", _("Modules with weights")),
    ("dtype", _("Type of the weights")),
    ("parameters", _("Parameters")),
    ("base_model", _("Base model as configured")),
    ("engines", _("Engines that can serve it")),
)


@dataclass(frozen=True, slots=True)
class Version:
    """A version as it is compared: ``files`` are sizes in bytes and digests by path."""

    name: str
    base: str
    rank: int | None
    report: Report
    files: Mapping[str, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Row:
    """Something about both, as texts; ``before`` None where there is nothing to compare with."""

    title: Promise | str
    before: str | None
    now: str
    differs: bool


@dataclass(frozen=True, slots=True)
class FileRow:
    path: str
    what: What
    before: int | None
    now: int | None


@dataclass(frozen=True, slots=True)
class MetricRow:
    """A figure of the evaluation; ``difference`` is what the candidate has more."""

    title: Promise
    base: float | None
    before: float | None
    now: float | None

    @property
    def difference(self) -> float | None:
        return None if self.before is None or self.now is None else self.now - self.before


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check with how each verdict is to be read (good, waiting, bad) and the word for it."""

    name: str
    before: tuple[str, Promise | str] | None
    now: tuple[str, Promise | str]
    message: str
    differs: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """What there is to look at; ``has_figures``: both were evaluated on the same examples."""

    settings: tuple[Row, ...]
    files: tuple[FileRow, ...]
    metrics: tuple[MetricRow, ...]
    has_figures: bool
    checks: tuple[CheckRow, ...]


def compare(now: Version, before: Version | None) -> Changes:
    """The candidate beside the version that serves now, or alone if none does."""
    metrics, has_figures = _metrics(now.report, before.report if before else {})
    return Changes(
        settings=tuple(_settings(now, before)),
        files=tuple(_files(now.files, before.files if before else None)),
        metrics=metrics,
        has_figures=has_figures,
        checks=tuple(_checks(now.report, before.report if before else None)),
    )


def _settings(now: Version, before: Version | None) -> Iterator[Row]:
    yield _row(_("Base model"), before.base if before else None, now.base)
    yield _row(_("Rank of the weights"), _text(before.rank) if before else None, _text(now.rank))
    found, other = facts_of(now.report), facts_of(before.report) if before else {}
    for name, title in _FACTS:
        if name in found or name in other:
            yield _row(title, _text(other.get(name)) if before else None, _text(found.get(name)))


def _row(title: Promise, before: str | None, now: str) -> Row:
    return Row(title, before, now, before is not None and before != now)


def _text(value: Any) -> str:  # noqa: ANN401  any JSON value
    if value is None:
        return "–"  # noqa: RUF001  a dash for what nobody knows
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def _files(now: Mapping[str, tuple[int, str]], before: Mapping[str, tuple[int, str]] | None) -> Iterator[FileRow]:
    old = now if before is None else before
    for path in sorted({*now, *old}):
        what: What = "same" if now.get(path) == old.get(path) else "changed"
        if path not in old or path not in now:
            what = "added" if path in now else "removed"
        sizes = [side[path][0] if path in side else None for side in (old, now)]
        yield FileRow(path, what, *sizes)


def _metrics(now: Report, before: Report) -> tuple[tuple[MetricRow, ...], bool]:
    """By the candidate's own report if the other was run beside it, else by the other's on the same examples."""
    found = metrics_of(now)
    if "candidate" not in found:
        return (), False
    other = found.get("current", {})
    if not other and evaluated_on(before) == evaluated_on(now):
        other = metrics_of(before).get("candidate", {})
    rows = metric_rows([found.get("base", {}), other, found["candidate"]])
    return tuple(MetricRow(title, *values) for title, values in rows), bool(other)


def _checks(now: Report, before: Report | None) -> Iterator[CheckRow]:
    found, other = verdicts_by_check(now), verdicts_by_check(before or {})
    for name, (said, message) in found.items():
        was = other[name][0] if name in other else None
        yield CheckRow(
            name, verdict(was) if was else None, verdict(said), message, differs=was is not None and was != said
        )


def files_as_compared(files: Iterable[Any]) -> dict[str, tuple[int, str]]:
    """Files of a version as ``Version.files``."""
    return {file.path: (file.artifact.size, file.artifact.sha256) for file in files}
