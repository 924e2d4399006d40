"""A policy by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cachecontrol.scoring.density import Density
from cachecontrol.scoring.gdsf import Gdsf
from cachecontrol.scoring.lfu import Lfu
from cachecontrol.scoring.lru import Lru
from cachecontrol.scoring.weighted_lru import WeightedLru

if TYPE_CHECKING:
    from collections.abc import Callable

    from cachecontrol.scoring.ports import ScoringPolicy
    from cachecontrol.scoring.settings import ScoringSettings

_MAKERS: Final[dict[str, Callable[[ScoringSettings], ScoringPolicy]]] = {
    "density": Density,
    "weighted_lru": WeightedLru,
    "gdsf": lambda _settings: Gdsf(),
    "lfu": lambda _settings: Lfu(),
    "lru": lambda _settings: Lru(),
}
POLICY_NAMES: Final = tuple(_MAKERS)


def make_policy(name: str, settings: ScoringSettings) -> ScoringPolicy:
    """The policy called ``name``, one of ``POLICY_NAMES``; ``KeyError`` for another: documents are checked before."""
    return _MAKERS[name](settings)
