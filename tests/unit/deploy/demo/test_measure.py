import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from deploy.demo import measure
from deploy.demo.conversation import Reply
from deploy.demo.measure import Measurement, RollbackUnheardError, time_rollback


def reply(text: str, *, version: str = "") -> Reply:
    now = time.monotonic()
    return Reply(text=text, version=version, tier="gpu", ttft_ms=1.0, began_at=now, first_token_at=now)


@pytest.mark.parametrize(
    ("measurement", "shown"),
    [
        (Measurement("load", 16.83), "load 17 ms"),
        (Measurement("load", 4.25), "load 4.2 ms"),
        (Measurement("start", 34.04, "s"), "start 34.0 s"),
        (Measurement("total", 12345.6), "total 12,346 ms"),
        (Measurement("verified", 7.0, "records"), "verified 7 records"),
    ],
)
def test_a_number_has_no_more_digits_than_it_means(measurement: Measurement, shown: str) -> None:
    assert str(measurement) == shown


def test_the_first_old_answer_ends_the_clock_and_newer_ones_are_counted() -> None:
    answers = (reply(text) for text in ("Short answer: no.", "Short answer: yes.", "Hello, dear friend! Yes."))
    committed: list[str] = []

    def begin() -> Callable[[], dict[str, str]]:
        committed.append(datetime.now(UTC).isoformat())
        return lambda: {"updated_at": committed[0]}

    timing = time_rollback(begin=begin, ask=lambda: next(answers), is_old=lambda one: one.voice == "warm")
    assert timing.other_answers == 2
    assert timing.reply.voice == "warm"
    assert 0 <= timing.from_commit_ms < 5000
    assert timing.from_command_ms >= 0


def test_a_rollback_that_is_never_heard_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_HEARD_WITHIN_S", 0.0)
    with pytest.raises(RollbackUnheardError, match="v2"):
        time_rollback(
            begin=lambda: dict, ask=lambda: reply("Short answer: no.", version="v2"), is_old=lambda _reply: False
        )
