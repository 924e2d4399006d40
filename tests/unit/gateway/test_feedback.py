from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.errors import FeedbackExceeded, FeedbackNotKept, InvalidFeedback
from gateway.feedback import Feedback, mark_document
from gateway.records import MarkRecord, RecordWriter

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
ID = "req-0123456789abcdef01230000002a"
GOOD: dict[str, Any] = {"request_id": ID, "mark": 0.25}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def make_feedback(*, per_minute: int = 1000, processes: int = 1, bound: int = 1000, clock: Any = None) -> Feedback:
    records = RecordWriter(database_url="postgresql://127.0.0.1:1/", bound=bound, flush_s=1)
    return Feedback(records, per_minute=per_minute, processes=processes, clock=clock or Clock())


def take(feedback: Feedback, tenant: str = "acme", **body: Any) -> MarkRecord:
    return feedback.take({**GOOD, **body}, tenant=tenant, at=AT)


def test_a_mark_is_of_its_request_and_its_tenant_and_queued() -> None:
    records = RecordWriter(database_url="postgresql://127.0.0.1:1/", bound=10, flush_s=1)
    mark = take(Feedback(records, per_minute=10))
    assert mark == MarkRecord(AT, "acme", ID, "quality", 0.25)
    assert mark_document(mark) == {"object": "feedback", "request_id": ID, "name": "quality", "mark": 0.25}
    assert records.pending == 1


@pytest.mark.parametrize(
    ("said", "mark"), [("up", 1.0), ("down", 0.0), (0, 0.0), (1, 1.0), (0.5, 0.5), (1e-300, 1e-300)]
)
def test_a_mark_is_a_number_or_a_thumb(said: object, mark: float) -> None:
    found = take(make_feedback(), mark=said).mark
    assert (found, type(found)) == (mark, float)


@pytest.mark.parametrize("said", [True, False, None, "Up", "", "0.5", -0.1, 1.0001, 2**70, [1], {"up": 1}])
def test_what_is_no_mark_is_refused(said: object) -> None:
    with pytest.raises(InvalidFeedback, match="from 0") as caught:
        take(make_feedback(), mark=said)
    assert caught.value.param == "mark"


@pytest.mark.parametrize("prefix", ["", "chatcmpl-", "cmpl-", "resp_"])
def test_the_id_of_an_answer_that_an_engine_made_of_ours_does_as_well(prefix: str) -> None:
    assert take(make_feedback(), request_id=f"{prefix}{ID}").request_id == ID


@pytest.mark.parametrize(
    "said",
    [
        None,
        1,
        "",
        "chatcmpl-0123456789abcdef0123456789abcdef",
        ID.upper(),
        f"{ID}\n",
        f" {ID}",
        f"{ID}-0",
        f"a-b-{ID}",
        "req-1",
        f"req-{'0' * 41}",
        f"{ID}\x00",
    ],
)
def test_what_is_no_id_of_a_request_is_refused(said: object) -> None:
    with pytest.raises(InvalidFeedback, match="x-lorekeeper-request-id") as caught:
        take(make_feedback(), request_id=said)
    assert caught.value.param == "request_id"


def test_what_was_marked_can_be_named() -> None:
    assert take(make_feedback(), name="tone.of-voice_2").name == "tone.of-voice_2"


@pytest.mark.parametrize("name", [None, 1, "", "Quality", "-x", "a" * 64, "a b", "ä"])
def test_a_name_that_is_none_is_refused(name: object) -> None:
    with pytest.raises(InvalidFeedback) as caught:
        take(make_feedback(), name=name)
    assert caught.value.param == "name"


def test_a_field_that_nobody_would_keep_is_refused_and_not_dropped() -> None:
    with pytest.raises(InvalidFeedback, match="no texts are kept") as caught:
        take(make_feedback(), comment="they were rude")
    assert caught.value.param == "comment"


def test_more_marks_than_a_tenant_may_send_are_refused_until_there_is_room() -> None:
    clock = Clock()
    feedback = make_feedback(per_minute=60, clock=clock)
    for _ in range(60):
        take(feedback)
    with pytest.raises(FeedbackExceeded, match=r"limit of 60 marks per minute is reached\. Try again in 1 s") as caught:
        take(feedback)
    assert caught.value.retry_after_s == 1
    take(feedback, tenant="other")
    clock.now += 1
    take(feedback)


def test_the_processes_of_a_port_share_the_limit() -> None:
    feedback = make_feedback(per_minute=4, processes=2)
    for _ in range(2):
        take(feedback)
    with pytest.raises(FeedbackExceeded, match="limit of 4"):
        take(feedback)


def test_a_mark_that_is_refused_takes_nothing_of_the_limit() -> None:
    feedback = make_feedback(per_minute=1)
    with pytest.raises(InvalidFeedback):
        take(feedback, mark=2)
    take(feedback)


def test_who_marks_hears_that_no_more_can_be_held() -> None:
    feedback = make_feedback(bound=1)
    take(feedback)
    with pytest.raises(FeedbackNotKept) as caught:
        take(feedback)
    assert caught.value.retry_after_s is not None
