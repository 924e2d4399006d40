"""Least frequently used: the fewest requests ever go first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachecontrol.scoring.summed import Summed

if TYPE_CHECKING:
    from cachecontrol.scoring.columns import Columns
    from cachecontrol.scoring.facts import Limit
    from cachecontrol.scoring.ports import Floats


class Lfu(Summed):
    name = "lfu"

    def terms(self, columns: Columns, *, limit: Limit) -> dict[str, Floats]:  # noqa: ARG002  # the same for both
        return {"hits": columns.hits}
