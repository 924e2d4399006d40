"""Marks that applications give to answers: read, bounded and queued. What they come to, the database tells."""

import math
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NoReturn

from gateway.errors import FeedbackExceeded, FeedbackNotKept, InvalidFeedback
from gateway.records import MarkRecord, RecordWriter
from gateway.routing.buckets import Bucket

DEFAULT_NAME: Final = "quality"
# A mark is three short fields: nothing that is longer is one.
LONGEST_BODY: Final = 4096
_FIELDS: Final = frozenset({"request_id", "mark", "name"})
_WORDS: Final[Mapping[object, float]] = {"up": 1.0, "down": 0.0}
# vLLM makes the `id` of its answers out of ours: who has only the answer's document may send that.
_REQUEST_ID: Final = re.compile(r"(?:[a-z]{2,16}[-_])?(req-[0-9a-f]{28,40})")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
_TRY_AGAIN_S: Final = 5


class Feedback:
    """Takes marks, so many a minute from each tenant; `taken` counts them.

    Several processes behind one port each take their part.
    """

    def __init__(
        self,
        records: RecordWriter,
        *,
        per_minute: int,
        processes: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """A tenant may send a minute's worth at once."""
        self._records = records
        self._per_minute = per_minute
        self._limit = max(1.0, per_minute / processes)
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}
        self.taken = 0

    def take(self, body: Mapping[str, object], *, tenant: str, at: datetime) -> MarkRecord:
        """The mark that the body gives, which came at that time and is on its way to the database now.

        Whether there is such a request isn't known here: its record may be on its way, too, from another gateway.

        Raises InvalidFeedback, which names the field at fault, FeedbackExceeded, and FeedbackNotKept.
        """
        unknown = min(body.keys() - _FIELDS, default=None)
        if unknown is not None:
            _refuse(f"The field '{unknown}' isn't one of 'request_id', 'mark' and 'name'; no texts are kept.", unknown)
        mark = MarkRecord(at, tenant, _request_id(body), _name(body), _mark(body))
        self._admit(tenant)
        if not self._records.add_mark(mark):
            message = "The database is away and no more marks can be held. Try again later."
            raise FeedbackNotKept(message, retry_after_s=_TRY_AGAIN_S)
        self.taken += 1
        return mark

    def _admit(self, tenant: str) -> None:
        now = self._clock()
        bucket = self._buckets.get(tenant)
        if bucket is None:
            bucket = self._buckets[tenant] = Bucket(self._limit, now=now)
        if bucket.fill(now) < 1:
            wait_s = max(1, math.ceil(bucket.wait_s(1)))
            message = f"This tenant's limit of {self._per_minute} marks per minute is reached. Try again in {wait_s} s."
            raise FeedbackExceeded(message, retry_after_s=wait_s)
        bucket.take(1)


def mark_document(mark: MarkRecord) -> dict[str, object]:
    """What the application is told of its mark."""
    return {"object": "feedback", "request_id": mark.request_id, "name": mark.name, "mark": mark.mark}


def _request_id(body: Mapping[str, object]) -> str:
    given = body.get("request_id")
    found = _REQUEST_ID.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        _refuse("The field 'request_id' must be the answer's header 'x-lorekeeper-request-id'.", "request_id")
    return found[1]


def _name(body: Mapping[str, object]) -> str:
    name = body.get("name", DEFAULT_NAME)
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        message = (
            "The field 'name' must be of up to 63 small letters, digits and '_', '.', '-', and begin with neither of"
            " those signs."
        )
        _refuse(message, "name")
    return name


def _mark(body: Mapping[str, object]) -> float:
    mark = body.get("mark")
    if isinstance(mark, str) and mark in _WORDS:
        return _WORDS[mark]
    # JSON's true is no 1, though Python's is.
    if isinstance(mark, bool) or not isinstance(mark, int | float) or not 0 <= mark <= 1:
        _refuse("The field 'mark' must be a number from 0 (bad) to 1 (good), or 'up' or 'down'.", "mark")
    return float(mark)


def _refuse(message: str, param: str) -> NoReturn:
    raise InvalidFeedback(message, param=param)
