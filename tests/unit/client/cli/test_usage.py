import json
from pathlib import Path

import httpx
from click.testing import CliRunner, Result

from client.cli.main import cli
from client.cli.session import Session
from client.retry import RetryPolicy

ENVIRON = {"LOREKEEPER_URL": "http://registry.test", "LOREKEEPER_TOKEN": "lk_1"}
FIGURES = {
    "requests": 40,
    "failed": 2,
    "fallbacks": 1,
    "prompt_tokens": 900,
    "completion_tokens": 300,
    "engine_ms": 12_340,
    "tiers": {"gpu": 30, "cpu": 10, "disk": 0, "remote": 0},
    "gpu_hit_rate": 0.75,
    "ttft_ms": {"p50": 21, "p95": 95, "p99": 99},
    "shadow_requests": 0,
    "shadow_engine_ms": 0,
}
USAGE = {
    "tenant": "acme",
    "since": "2026-03-01T00:00:00Z",
    "until": "2026-03-02T00:00:00Z",
    "by": "alias",
    "total": FIGURES | {"requests": 41, "ttft_ms": None},
    "groups": [FIGURES | {"name": "support"}, FIGURES | {"name": "", "gpu_hit_rate": None}],
    "left_out": 3,
}
TRACE = "t_s,tenant,version,size_mib,reload_ms\n0.5,acme,tone@v1,12.5,250\n"


def run(answer: httpx.Response, *words: str, sent: list[httpx.URL] | None = None) -> Result:
    def serve(request: httpx.Request) -> httpx.Response:
        if sent is not None:
            sent.append(request.url)
        return answer

    session = Session(environ=ENVIRON, transport=httpx.MockTransport(serve), retry=RetryPolicy(attempts=1))
    return CliRunner(env={"COLUMNS": "400"}).invoke(cli, list(words), obj=session)


def test_usage_is_a_row_for_each_name_and_one_for_all() -> None:
    sent: list[httpx.URL] = []
    words = ("usage", "acme", "--since", "2026-03-01", "--until", "2026-03-02T00:00:00+0100")
    result = run(httpx.Response(200, json=USAGE), *words, sent=sent)
    assert result.exit_code == 0, result.output
    _head, support, unnamed, every = (line.split() for line in result.output.splitlines()[:4])
    assert support == ["support", "40", "2", "1", "900", "300", "12.3", "21", "95", "99", "75.0%"]
    assert unnamed[0] == "-"
    assert every[:2] == ["all", "41"]
    assert "3 smaller ones are left out." in result.output
    assert dict(sent[0].params) == {
        "by": "alias",
        "since": "2026-03-01T00:00:00+00:00",
        "until": "2026-03-02T00:00:00+01:00",
    }


def test_usage_is_one_document_with_json() -> None:
    found = json.loads(run(httpx.Response(200, json=USAGE), "usage", "acme", "--by", "day", "--json").output)
    assert (found["total"]["requests"], found["groups"][0]["ttft_ms"]["p95"]) == (41, 95)


def test_a_trace_is_written_as_it_comes(tmp_path: Path) -> None:
    sent: list[httpx.URL] = []
    path = tmp_path / "trace.csv"
    words = ("trace", "export", "--base-model", "smol", "-o", str(path))
    result = run(httpx.Response(200, text=TRACE), *words, sent=sent)
    assert result.exit_code == 0, result.output
    assert path.read_text(encoding="utf-8") == TRACE
    assert "1 requests written" in result.output
    assert (sent[0].path, dict(sent[0].params)) == ("/api/v1/request-trace", {"base_model": "smol"})
    assert run(httpx.Response(200, text=TRACE), "trace", "export").output == TRACE


def test_a_trace_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("mine")
    assert run(httpx.Response(200, text=TRACE), "trace", "export", "-o", str(path)).exit_code == 1
    assert path.read_text() == "mine"
