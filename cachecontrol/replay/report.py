"""Policies side by side on one trace."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from cachecontrol.replay.simulate import replay

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cachecontrol.replay.simulate import NodeShape, Tally
    from cachecontrol.replay.trace import Trace
    from cachecontrol.scoring.ports import ScoringPolicy
    from cachecontrol.scoring.settings import ScoringSettings

COLUMNS: Final = (
    "policy",
    "requests",
    "misses",
    "miss rate",
    "silent reads",
    "loaded GiB",
    "fetched GiB",
    "cost s",
    "priority x cost s",
)
_MIB_PER_GIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Line:
    """One policy and what it came to."""

    policy: str
    tally: Tally

    @property
    def figures(self) -> dict[str, float]:
        """Everything that was counted, by name."""
        counted = {field.name: getattr(self.tally, field.name) for field in fields(self.tally)}
        return {"requests": self.tally.requests, "misses": self.tally.misses, **counted}

    @property
    def cells(self) -> tuple[str, ...]:
        """As texts, in the order of ``COLUMNS``."""
        tally = self.tally
        return (
            self.policy,
            f"{tally.requests}",
            f"{tally.misses}",
            f"{tally.miss_rate:.2%}",
            f"{tally.silent_reads}",
            f"{tally.loaded_mib / _MIB_PER_GIB:.1f}",
            f"{tally.fetched_mib / _MIB_PER_GIB:.1f}",
            f"{tally.cost_ms / 1000:.1f}",
            f"{tally.weighted_cost_ms / 1000:.1f}",
        )


def compare(
    trace: Trace, policies: Iterable[ScoringPolicy], settings: ScoringSettings, shape: NodeShape
) -> tuple[Line, ...]:
    """Each policy alone on an empty node of that shape."""
    return tuple(Line(policy.name, replay(trace, policy, settings, shape)) for policy in policies)


def as_text(lines: Sequence[Line]) -> str:
    """A table with a heading, its columns aligned."""
    rows = [COLUMNS, *(line.cells for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) if not place else cell.rjust(width) for place, (cell, width) in enumerate(row))
        for row in (zip(cells, widths, strict=True) for cells in rows)
    )
