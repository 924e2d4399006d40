"""Where a request's spans belong: W3C Trace Context, level 1 (https://www.w3.org/TR/trace-context/)."""

import random
import re
from collections.abc import Mapping
from typing import NamedTuple

_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
_FIRST_VERSION = re.compile(r"00-[0-9a-f-]{52}")
_SAMPLED = 1
# So much must be passed on; of more the specification lets one drop what is too much, and spans that wait hold it.
_LONGEST_STATE = 512
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


class SpanContext(NamedTuple):
    """The ids of a request's spans, in lower hexadecimal.

    `span_id` is the request's own span, `call_id` that of the call to the engine; `parent_id` is the caller's, empty
    where the trace begins here. `state` is the caller's `tracestate`, empty if it's longer than 512 characters.
    """

    trace_id: str
    span_id: str
    call_id: str
    parent_id: str = ""
    state: str = ""

    @property
    def traceparent(self) -> str:
        """What the engine is told: the call is the parent of whatever it does."""
        return f"00-{self.trace_id}-{self.call_id}-01"


def begin_spans(headers: Mapping[str, str], *, share: float) -> SpanContext | None:
    """Ids for the spans of a request with these headers; None if it is not to be traced.

    The caller has decided where it says so; of those that say nothing, so large a share is traced.
    """
    said = headers.get("traceparent")
    parent = None if said is None else _parent(said)
    if parent is None:
        return SpanContext(_trace_id(), _span_id(), _span_id()) if random.random() < share else None  # noqa: S311
    trace_id, parent_id, is_sampled = parent
    if not is_sampled:
        return None
    state = headers.get("tracestate", "")
    return SpanContext(trace_id, _span_id(), _span_id(), parent_id, state if len(state) <= _LONGEST_STATE else "")


def _parent(said: str) -> tuple[str, str, bool] | None:
    found = _PARENT.fullmatch(said)
    if found is None or (said.startswith("00-") and not _FIRST_VERSION.fullmatch(said)):
        return None
    trace_id, parent_id, flags = found.groups()
    if trace_id == _NO_TRACE or parent_id == _NO_SPAN:
        return None
    return trace_id, parent_id, bool(int(flags, 16) & _SAMPLED)


def _trace_id() -> str:
    return f"{random.getrandbits(128) or 1:032x}"


def _span_id() -> str:
    return f"{random.getrandbits(64) or 1:016x}"
