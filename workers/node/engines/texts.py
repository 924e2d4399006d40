"""Classing an engine's refusal by its status and its text: nearly all that engines say of why is in words.

Each driver has a list of rules; the first one whose pattern is found decides. What none knows is a failure in the midst
of it, which may have left something in a slot: it is permanent, and the node is tainted.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from workers.node.errors import EngineAwayError, EngineError, EngineFailedError, EngineFullError, EngineRefusedError

_BUSY = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


@dataclass(frozen=True, slots=True)
class Rule:
    """Texts in which the pattern is found (in any case of letters) become this error."""

    pattern: str
    error: type[EngineError]


def away(pattern: str) -> Rule:
    """It is not well, or not now: transient."""
    return Rule(pattern, EngineAwayError)


def full(pattern: str) -> Rule:
    """No place: capacity."""
    return Rule(f"out of memory|{pattern}", EngineFullError)


def refused(pattern: str) -> Rule:
    """Never this adapter, and nothing was taken in."""
    return Rule(pattern, EngineRefusedError)


def error_of(status: int, text: str, rules: Sequence[Rule]) -> EngineError:
    """The error for an answer with this status: by the rules only where the status itself doesn't tell."""
    if status in _BUSY:
        return EngineAwayError(text)
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return EngineRefusedError(text)
    return classed(text, rules)


def classed(text: str, rules: Sequence[Rule]) -> EngineError:
    """The error for a text, by the rules alone."""
    for rule in rules:
        if re.search(rule.pattern, text, re.IGNORECASE):
            return rule.error(text)
    return EngineFailedError(text)
