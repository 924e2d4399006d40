import json

import httpx
from click.testing import CliRunner, Result

from client.cli.main import cli
from client.cli.session import Session
from client.retry import RetryPolicy

ENVIRON = {"LOREKEEPER_URL": "http://registry.test", "LOREKEEPER_TOKEN": "lk_1"}
EVICTION = {
    "node": "n1",
    "tenant": "acme",
    "adapter": "tone",
    "version": "v1",
    "tier": "gpu",
    "to_tier": "disk",
    "reason": "room",
    "policy": "density",
    "policy_number": 3,
    "score": -1.25,
    "factors": {"rate": -2.25, "reload": 1},
    "runner_up": None,
    "runner_up_score": 0.5,
    "asked_by": "other",
    "at": "2026-07-04T12:00:00Z",
}
PLACEMENT = {
    "tenant": "acme",
    "adapter": "tone",
    "version": "v1",
    "requests_per_hour": 12.5,
    "hits": 40,
    "last_used_at": "2026-07-04T11:00:00Z",
    "load": {"state": "placed", "node": "n2", "waiting": 3, "since": "s", "until": "u"},
    "nodes": [
        {
            "node": "n1",
            "tenant": "acme",
            "adapter": "tone",
            "version": "v1",
            "desired": "disk",
            "observed": "on_disk",
            "planned_tier": "disk",
            "tier": "disk",
        }
    ],
    "evictions": [EVICTION],
}


def run(answer: object, *words: str, sent: list[httpx.URL] | None = None) -> Result:
    def serve(request: httpx.Request) -> httpx.Response:
        if sent is not None:
            sent.append(request.url)
        return httpx.Response(200, json=answer)

    session = Session(environ=ENVIRON, transport=httpx.MockTransport(serve), retry=RetryPolicy(attempts=1))
    return CliRunner(env={"COLUMNS": "400"}).invoke(cli, list(words), obj=session)


def test_evictions_are_listed_with_what_scored_them() -> None:
    sent: list[httpx.URL] = []
    result = run({"results": [EVICTION], "next": None}, "evictions", "--tenant", "acme", "--reason", "room", sent=sent)
    assert result.exit_code == 0, result.output
    assert dict(sent[0].params) == {"tenant": "acme", "reason": "room"}
    for word in ("acme/tone@v1", "density #3", "-1.25", "- (0.5)", "other"):
        assert word in result.stdout


def test_no_more_evictions_are_read_than_asked_for() -> None:
    result = run({"results": [EVICTION] * 3, "next": "more"}, "evictions", "--limit", "2", "--json")
    assert len(json.loads(result.stdout)["results"]) == 2


def test_why_tells_where_a_version_is_and_why_it_left() -> None:
    sent: list[httpx.URL] = []
    result = run(PLACEMENT, "why", "acme/tone@v1", sent=sent)
    assert result.exit_code == 0, result.output
    assert sent[0].path == "/api/v1/tenants/acme/adapters/tone/versions/v1/placement"
    for word in ("12.5", "placed n2", "on_disk", "rate -2.25, reload 1"):
        assert word in result.stdout


def test_why_as_json_is_one_document() -> None:
    found = json.loads(run(PLACEMENT, "why", "acme/tone@v1", "--json").stdout)
    assert found["evictions"][0]["factors"] == {"rate": -2.25, "reload": 1}
    assert found["load"]["node"] == "n2"
