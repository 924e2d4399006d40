"""Which versions make room: the smallest scores, and never more of them than the room needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from cachecontrol.scoring.facts import Limit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from cachecontrol.scoring.facts import Facts
    from cachecontrol.scoring.ports import Score, ScoringPolicy

_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A victim with its score, and who would have gone in its place: the next in order that stays."""

    victim: UUID
    score: Score
    runner_up: UUID | None
    runner_up_score: Score | None


def worth_least_first(
    policy: ScoringPolicy, facts: Sequence[Facts], *, now: datetime, limit: Limit
) -> tuple[UUID, ...]:
    """All of them in the order in which ``choose_victims`` would have them leave, spare ones aside."""
    return tuple(one.fact.version_id for one in _ranked(policy, facts, now=now, limit=limit))


@dataclass(frozen=True, slots=True)
class _Ranked:
    fact: Facts
    score: Score
    room: float


def choose_victims(
    policy: ScoringPolicy, facts: Sequence[Facts], *, now: datetime, limit: Limit, need: float
) -> tuple[Choice, ...]:
    """Who leaves so that ``need`` slots (or MiB) become free, smallest score first; nobody if that can't be met.

    ``facts`` are those that may go: leave out what is in flight, queued, pinned or protected. No victim is spare:
    without any one of them the rest would not be enough. Of equal scores the longest unused goes first, then the
    smaller id.
    """
    ranked = _ranked(policy, facts, now=now, limit=limit)
    chosen = fewest_first([one.room for one in ranked], need)
    return tuple(_choice(ranked, place, chosen) for place in chosen)


def _ranked(policy: ScoringPolicy, facts: Sequence[Facts], *, now: datetime, limit: Limit) -> list[_Ranked]:
    scores = policy.score(facts, now=now, limit=limit)
    ranked = [
        _Ranked(fact, score, 1.0 if limit is Limit.SLOTS else fact.size_mib)
        for fact, score in zip(facts, scores, strict=True)
    ]
    return sorted(ranked, key=lambda one: (one.score.value, one.fact.last_used_at or _NEVER, one.fact.version_id))


def fewest_first(rooms: Sequence[float], need: float) -> list[int]:
    """The first places whose rooms come to ``need``, without those that prove spare; none if all are not enough.

    Spared is the last in order first: who is worth most.
    """
    chosen: dict[int, float] = {}
    room = 0.0
    for place, one in enumerate(rooms):
        if room >= need:
            break
        chosen[place] = one
        room = math.fsum(chosen.values())
    if room < need:
        return []
    for place in sorted(chosen, reverse=True):
        if math.fsum(other for key, other in chosen.items() if key != place) >= need:
            del chosen[place]
    return list(chosen)


def _choice(ranked: list[_Ranked], place: int, chosen: list[int]) -> Choice:
    stays = next((one for later, one in enumerate(ranked) if later > place and later not in chosen), None)
    return Choice(
        victim=ranked[place].fact.version_id,
        score=ranked[place].score,
        runner_up=stays.fact.version_id if stays else None,
        runner_up_score=stays.score if stays else None,
    )
