import json
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from tests.unit.workers.node.kit import MemoryWeb
from workers.node.errors import WebAwayError, WebRefusedError
from workers.node.fetch import Fetcher
from workers.node.reports import Courier, Outbox, Outcome, OutcomeKind, WebClient


def outcome(name: str, generation: int, kind: OutcomeKind = "loaded") -> Outcome:
    return Outcome(name, generation, kind)


def test_an_outcome_leaves_out_what_is_empty() -> None:
    assert Outcome("lk-a", 1, "on_disk").to_json() == {"engine_name": "lk-a", "generation": 1, "outcome": "on_disk"}


def test_an_outcome_comes_back_from_json() -> None:
    full = Outcome("lk-a", 1, "failed", "why", "capacity", {"fetch": 3}, "boot-1")
    assert Outcome.from_json(json.loads(json.dumps(full.to_json()))) == full


def test_an_unknown_outcome_is_not_read() -> None:
    with pytest.raises(ValueError, match="not an outcome"):
        Outcome.from_json({"engine_name": "lk-a", "generation": 1, "outcome": "melted"})


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
    outbox.append(outcome("lk-a", 1))
    (tmp_path / "00000000000000000000.json").write_text("{")
    assert [body["generation"] for _, body in outbox.pending()] == [1]
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


def client(answer: httpx.Response | Exception) -> WebClient:
    def handle(request: httpx.Request) -> httpx.Response:
        assert request.headers["Authorization"] == "Bearer lk_token"
        assert request.url == "http://web.test/api/v1/node/report"
        if isinstance(answer, Exception):
            raise answer
        return answer

    return WebClient("http://web.test", "lk_token", transport=httpx.MockTransport(handle))


def test_a_report_is_posted_with_the_token() -> None:
    answer = client(httpx.Response(200, json={"ok": True, "unknown": ["lk-x"]})).report({"boot_id": "b"})
    assert answer["unknown"] == ["lk-x"]


@pytest.mark.parametrize("status", [400, 404, 409, 422])
def test_a_refused_body_is_refused_for_ever(status: int) -> None:
    with pytest.raises(WebRefusedError):
        client(httpx.Response(status)).report({})


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(401),
        httpx.Response(403),
        httpx.Response(302, headers={"Location": "http://evil.test/"}),
        httpx.Response(429),
        httpx.Response(502),
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json=[]),
        httpx.ConnectError("refused"),
    ],
)
def test_anything_else_may_pass_with_time(answer: httpx.Response | Exception) -> None:
    with pytest.raises(WebAwayError):
        client(answer).report({})


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


def test_the_nodes_token_never_goes_to_a_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert not WebClient("http://web.test", "lk_token")._http._mounts
    assert not Fetcher()._http._mounts
