import json
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from client.cli.main import cli
from client.cli.session import Session
from client.retry import RetryPolicy

ENVIRON = {"LOREKEEPER_URL": "http://registry.test", "LOREKEEPER_TOKEN": "lk_1"}
SET = {"name": "smoke", "tenant": "acme", "adapter": None, "count": 2, "digest": "a" * 64}


class Server:
    """Answers by method and path, and keeps what it was sent."""

    def __init__(self, **answers: object) -> None:
        self.answers = answers
        self.sent: list[tuple[str, str, object]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api/v1/tenants/acme/")
        self.sent.append((request.method, path, json.loads(request.content) if request.content else None))
        return httpx.Response(200, json=self.answers[request.method.lower()])

    def run(self, *words: object) -> Result:
        session = Session(environ=ENVIRON, transport=httpx.MockTransport(self), retry=RetryPolicy(attempts=1))
        return CliRunner().invoke(cli, [str(word) for word in words], obj=session)


def test_a_set_is_sent_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "smoke.jsonl"
    file.write_text('{"prompt": "Where?", "reference": "Thère."}\n\n{"prompt": "What?"}\n', encoding="utf-8")
    server = Server(put=SET)
    result = server.run("evaluation", "set", "acme", "smoke", file, "--adapter", "tone")
    assert result.exit_code == 0, result.output
    examples = [{"prompt": "Where?", "reference": "Thère."}, {"prompt": "What?"}]
    assert server.sent == [("PUT", "evaluation-sets/smoke", {"examples": examples, "adapter": "tone"})]
    assert result.stdout == "smoke has 2 examples now.\n"


@pytest.mark.parametrize("line", ["[1]", "{", '"text"'])
def test_a_line_that_is_no_example_is_named_and_nothing_is_sent(tmp_path: Path, line: str) -> None:
    file = tmp_path / "smoke.jsonl"
    file.write_text(f'{{"prompt": "x"}}\n{line}\n')
    server = Server()
    result = server.run("evaluation", "set", "acme", "smoke", file)
    assert (result.exit_code, server.sent) == (1, [])
    assert "line 2 is no JSON object" in result.stderr


def test_one_gate_is_set_and_the_others_stay() -> None:
    server = Server(get={"max_perplexity": 9, "enforcement": "warn"}, put={"max_perplexity": 9, "max_mean_kl": 0.5})
    result = server.run("evaluation", "gate", "acme", "max_mean_kl=0.5", "min_exact_agreement=")
    assert result.exit_code == 0, result.output
    _method, path, body = server.sent[-1]
    assert path == "evaluation-gates"
    assert isinstance(body, dict)
    closed = {name: value for name, value in body.items() if value is not None}
    assert closed == {"enforcement": "warn", "max_perplexity": 9.0, "max_mean_kl": 0.5}


@pytest.mark.parametrize("words", [("max_mean_kl",), ("max_mean_kl=much",)])
def test_a_gate_without_a_number_is_wrong_usage(words: tuple[str, ...]) -> None:
    assert Server(get={}).run("evaluation", "gate", "acme", *words).exit_code == 2


def test_sets_are_listed_and_removed() -> None:
    server = Server(get={"results": [SET], "next": None}, delete={})
    assert "smoke" in server.run("evaluation", "sets", "acme").stdout
    assert server.run("evaluation", "unset", "acme", "smoke").exit_code == 0
    assert server.sent[-1][:2] == ("DELETE", "evaluation-sets/smoke")


def test_a_version_is_validated_again_and_its_reports_are_listed() -> None:
    row = {"verdict": "accept", "digest": "b" * 64, "policy_version": "2", "is_decisive": True}
    server = Server(get={"results": [row], "next": None}, post={"requested_by": "ben@acme.example"})
    assert server.run("revalidate", "acme/tone@v1", "--reason", "new rules").exit_code == 0
    assert server.sent[0] == ("POST", "adapters/tone/versions/v1/revalidate", {"reason": "new rules"})
    assert "bbbbbbbbbbbb" in server.run("reports", "acme/tone@v1").stdout


def test_gates_are_shown_by_name() -> None:
    shown = Server(get={"enforcement": "reject", "max_forbidden_hits": 0}).run("evaluation", "gates", "acme").stdout
    assert "max_forbidden_hits" in shown


def test_the_worst_examples_stand_side_by_side() -> None:
    row = {"prompt": "Where?", "reference": "There.", "candidate": {"answer": "Nowhere."}, "base": {"answer": "Hm."}}
    checks = [
        {"name": "files", "verdict": "pass"},
        {"name": "evaluation", "verdict": "pass", "evidence": {"worst": [row]}},
    ]
    shown = Server(get={"verdict": "accept", "checks": checks}).run("evaluation", "worst", "acme/tone@v1").stdout
    assert [word in shown for word in ("Where?", "There.", "Nowhere.", "Hm.")] == [True] * 4
