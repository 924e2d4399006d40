from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.unit.workers.node.kit import MemoryWeb
from workers.node.courier import MAX_PAUSE_S, MAX_STEPS, STEP_PAUSE_S, Courier, Outbox
from workers.node.errors import WebAwayError, WebFailedError, WebRefusedError
from workers.node.reports import Outcome, OutcomeKind


def outcome(name: str, generation: int, kind: OutcomeKind = "loaded") -> Outcome:
    return Outcome(name, generation, kind)


def test_outcomes_arrive_in_order_after_web_was_away(tmp_path: Path) -> None:
    web = MemoryWeb(error=WebAwayError("down"))
    courier = Courier(Outbox(tmp_path), web)
    for generation in range(1, 13):
        courier.submit(outcome("lk-a", generation))
    assert courier.deliver() is False
    web.error = None
    assert courier.deliver() is True
    assert [body["generation"] for body in web.outcomes] == list(range(1, 13))
    assert list(tmp_path.iterdir()) == []


def test_a_killed_agent_delivers_after_its_restart_and_before_news(tmp_path: Path) -> None:
    Courier(Outbox(tmp_path), MemoryWeb(error=WebAwayError("down"))).submit(outcome("lk-a", 1))
    web = MemoryWeb()
    courier = Courier(Outbox(tmp_path), web)
    courier.submit(outcome("lk-a", 2))
    courier.deliver()
    assert [body["generation"] for body in web.outcomes] == [1, 2]


def test_one_that_web_never_takes_does_not_block_the_others(tmp_path: Path) -> None:
    class Picky(MemoryWeb):
        def _check(self) -> None:
            if not self.reports:
                self.reports.append({})
                raise WebRefusedError("HTTP 409")

    web = Picky()
    courier = Courier(Outbox(tmp_path), web)
    courier.submit(outcome("lk-a", 1))
    courier.submit(outcome("lk-a", 2))
    assert courier.deliver() is True
    assert [body["generation"] for body in web.outcomes] == [2]


def test_a_damaged_spool_file_is_dropped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    outbox = Outbox(tmp_path)
    outbox.keep(outbox.append(outcome("lk-a", 1), is_end=True))
    (tmp_path / "00000000000000000000.json").write_text("{")
    assert [letter.body["generation"] for letter in Outbox(tmp_path).pending()] == [1]
    assert "damaged" in caplog.text


def test_web_being_away_is_logged_once_and_its_return_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    web = MemoryWeb(error=WebAwayError("down"))
    courier = Courier(Outbox(tmp_path), web)
    courier.submit(outcome("lk-a", 1))
    for _ in range(3):
        courier.deliver()
    web.error = None
    courier.deliver()
    assert [record.getMessage() for record in caplog.records] == [
        "outcomes wait on disk: down",
        "outcomes are delivered again",
    ]


def test_the_thread_delivers_soon_and_ends_when_told(tmp_path: Path) -> None:
    web, stop = MemoryWeb(), Event()
    courier = Courier(Outbox(tmp_path), web)
    thread = Thread(target=courier.run, args=(stop,))
    thread.start()
    courier.submit(outcome("lk-a", 1))
    courier.stop(stop)
    thread.join(5)
    assert not thread.is_alive()
    assert len(web.outcomes) == 1


def test_a_disk_that_fails_does_not_end_the_couriers_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    web, stop = MemoryWeb(), Event()
    courier = Courier(Outbox(tmp_path), web)
    failing = [OSError(5, "Input/output error")]
    deliver = courier.deliver

    def once_failing() -> bool:
        if failing:
            raise failing.pop()
        return deliver()

    monkeypatch.setattr(courier, "deliver", once_failing)
    courier.submit(outcome("lk-a", 1))
    thread = Thread(target=courier.run, args=(stop,))
    thread.start()
    for _ in range(100):
        if web.outcomes:
            break
        stop.wait(0.05)
    courier.stop(stop)
    thread.join()
    assert [body["generation"] for body in web.outcomes] == [1]


def sent(tmp_path: Path, *steps: OutcomeKind, end: OutcomeKind | None, later_s: float = STEP_PAUSE_S) -> list[str]:
    web, now = MemoryWeb(), [100.0]
    courier = Courier(Outbox(tmp_path, clock=lambda: now[0]), web)
    for step in steps:
        courier.tell(outcome("lk-a", 1, step))
    courier.tell(outcome("lk-b", 1, "loading"))
    if end is not None:
        courier.submit(outcome("lk-a", 1, end))
    now[0] += later_s
    courier.deliver()
    return [body["outcome"] for body in web.outcomes]


def test_steps_that_a_good_end_overtakes_are_not_told(tmp_path: Path) -> None:
    assert sent(tmp_path, "fetching", "on_disk", "loading", end="loaded") == ["loading", "loaded"]


def test_steps_before_a_failure_are_told_since_they_say_where_it_happened(tmp_path: Path) -> None:
    assert sent(tmp_path, "on_disk", "loading", end="failed") == ["on_disk", "loading", "loading", "failed"]


def test_a_step_waits_for_the_end_of_its_command_which_may_make_it_needless(tmp_path: Path) -> None:
    assert sent(tmp_path, "fetching", end=None, later_s=STEP_PAUSE_S - 0.01) == []
    assert sent(tmp_path, "fetching", end="loaded", later_s=0) == ["loaded"]
    assert sent(tmp_path, "fetching", end=None, later_s=STEP_PAUSE_S) == ["fetching", "loading"]


def test_a_failure_does_not_wait_and_takes_its_steps_with_it(tmp_path: Path) -> None:
    assert sent(tmp_path, "on_disk", "loading", end="failed", later_s=0) == ["on_disk", "loading", "failed"]


def test_the_thread_wakes_when_the_next_step_is_due(tmp_path: Path) -> None:
    now = [100.0]
    outbox = Outbox(tmp_path, clock=lambda: now[0])
    assert outbox.pause_s() == MAX_PAUSE_S
    outbox.append(outcome("lk-a", 1, "loading"), is_end=False)
    now[0] += 0.1
    assert outbox.pause_s() == pytest.approx(STEP_PAUSE_S - 0.1)


def test_steps_are_not_kept_on_disk(tmp_path: Path) -> None:
    Courier(Outbox(tmp_path), MemoryWeb()).tell(outcome("lk-a", 1, "loading"))
    assert list(tmp_path.iterdir()) == []


def test_an_end_that_is_delivered_before_it_is_written_leaves_no_file(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    letter = outbox.append(outcome("lk-a", 1), is_end=True)
    outbox.done(letter)
    outbox.keep(letter)
    assert list(tmp_path.iterdir()) == []
    assert outbox.pending() == ()


def test_an_end_that_is_delivered_while_it_is_written_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = Outbox(tmp_path)
    letter = outbox.append(outcome("lk-a", 1), is_end=True)

    def write(path: Path, body: object) -> None:
        path.write_text(repr(body))
        outbox.done(letter)

    monkeypatch.setattr("workers.node.courier.write_json", write)
    outbox.keep(letter)
    assert list(tmp_path.iterdir()) == []


def test_an_end_that_a_full_disk_can_not_keep_is_delivered_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("workers.node.courier.write_json", full)
    web = MemoryWeb()
    courier = Courier(Outbox(tmp_path), web)
    courier.submit(outcome("lk-a", 1))
    courier.deliver()
    assert [body["outcome"] for body in web.outcomes] == ["loaded"]
    assert "can't be kept on disk" in caplog.text


def test_an_unforeseen_error_does_not_end_the_couriers_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stop = Event()
    courier = Courier(Outbox(tmp_path), MemoryWeb())
    tries: list[int] = []

    def broken() -> bool:
        tries.append(1)
        if len(tries) == 2:
            stop.set()
        raise ZeroDivisionError

    monkeypatch.setattr(courier, "deliver", broken)
    monkeypatch.setattr("workers.node.courier.FIRST_PAUSE_S", 0.0)
    courier.run(stop)
    assert len(tries) == 3
    assert "can't be delivered" in caplog.text


def test_an_outcome_that_web_fails_at_holds_up_only_its_own_name(tmp_path: Path) -> None:
    class Failing(MemoryWeb):
        def outcome(self, body: Mapping[str, Any]) -> None:
            if body["engine_name"] == "lk-a":
                raise WebFailedError("web answers HTTP 500")
            super().outcome(body)

    web = Failing()
    courier = Courier(Outbox(tmp_path), web)
    for generation in (1, 2):
        courier.submit(outcome("lk-a", generation))
        courier.submit(outcome("lk-b", generation))
    assert courier.deliver() is False
    assert [(body["engine_name"], body["generation"]) for body in web.outcomes] == [("lk-b", 1), ("lk-b", 2)]
    assert len(list(tmp_path.iterdir())) == 2


def test_steps_that_wait_are_not_more_than_can_be_of_use(tmp_path: Path) -> None:
    now = [100.0]
    outbox = Outbox(tmp_path, clock=lambda: now[0])
    for number in range(MAX_STEPS + 5):
        outbox.append(outcome(f"lk-{number}", 1, "loading"), is_end=False)
    outbox.append(outcome("lk-a", 1, "failed"), is_end=True)
    now[0] += STEP_PAUSE_S
    assert [letter.body["engine_name"] for letter in outbox.pending()[:1]] == ["lk-5"]
    assert len(outbox.pending()) == MAX_STEPS + 1
