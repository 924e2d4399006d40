import json

import httpx
import pytest
from click.testing import CliRunner, Result

from client.cli.main import cli
from client.cli.session import Session
from client.retry import RetryPolicy

ENVIRON = {"LOREKEEPER_URL": "http://registry.test", "LOREKEEPER_TOKEN": "lk_1"}
RESIDENCY = {
    "node": "n1",
    "tenant": "acme",
    "adapter": "tone",
    "version": "v1",
    "desired": "disk",
    "observed": "on_disk",
    "planned_tier": "disk",
    "generation": 2,
    "tier": "gpu",
    "tier_is_estimate": True,
}
NODE = {
    "name": "n1",
    "status": "up",
    "disk_bytes": 2000,
    "disk_used_bytes": 1000,
    "cordoned": True,
    "recycling_since": "2026-07-04T12:00:00Z",
    "residencies": [RESIDENCY],
}


class Server:
    """Answers with one document after the other, and keeps what it was sent."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, str, object]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        self.sent.append((request.method, request.url.path.removeprefix("/api/v1/"), body))
        return httpx.Response(200, json=self.answers.pop(0))

    def run(self, *words: str) -> Result:
        session = Session(environ=ENVIRON, transport=httpx.MockTransport(self), retry=RetryPolicy(attempts=1))
        return CliRunner().invoke(cli, list(words), obj=session)


@pytest.mark.parametrize("verb", ["cordon", "uncordon", "drain", "resume", "recycle"])
def test_a_node_is_operated_with_a_reason_and_shown(verb: str) -> None:
    server = Server(NODE)
    result = server.run("node", verb, "n1", "--reason", "new driver")
    assert result.exit_code == 0, result.output
    assert server.sent == [("POST", f"nodes/n1/{verb}", {"reason": "new driver"})]
    assert "cordoned, recycling" in result.stdout


def test_a_list_of_nodes_says_what_is_out_of_the_ordinary() -> None:
    result = Server({"results": [NODE]}).run("nodes")
    assert "cordoned, recycling" in result.stdout


def test_a_node_is_shown_with_its_disk_and_with_tiers_that_are_estimates_marked() -> None:
    result = Server(NODE).run("nodes", "n1")
    assert "1,000 of 2,000 bytes" in result.stdout
    assert "gpu?" in result.stdout


def test_a_version_is_taken_out_of_the_engine_alone_and_waited_for() -> None:
    server = Server({**RESIDENCY, "observed": "draining"}, NODE)
    result = server.run("evict", "n1", "acme/tone@v1", "--to", "disk", "--wait")
    assert result.exit_code == 0, result.output
    assert server.sent[0] == (
        "POST",
        "nodes/n1/evict",
        {"tenant": "acme", "adapter": "tone", "version": "v1", "to": "disk"},
    )
    assert "on_disk" in result.stdout
