import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from client.cli.main import cli
from client.cli.session import Session
from client.resources import releases
from client.retry import RetryPolicy

ENVIRON = {"LOREKEEPER_URL": "http://registry.test", "LOREKEEPER_TOKEN": "lk_1"}
DIGEST = "d1" * 32
RELEASE: dict[str, Any] = {
    "id": "1",
    "tenant": "acme",
    "alias": "support",
    "number": 3,
    "state": "progressing",
    "stable": {"adapter": "tone", "version": "v1", "version_id": "a"},
    "candidate": {"adapter": "tone", "version": "v2", "version_id": "b"},
    "sentence": "It waits for 10 minutes to be over.",
    "pause_kind": None,
    "step": 3,
    "step_kind": "canary",
    "steps": 6,
    "revision": 7,
    "digest": DIGEST,
    "template": {"name": "careful", "number": 2},
    "approvals_needed": 1,
    "approvals_given": 1,
    "made_by": "ada@example.com",
    "made_at": "2026-07-04T12:00:00Z",
}
WHOLE = {
    **RELEASE,
    "plan": {"approvals": 1},
    "approvals": [{"reviewer": "ben@example.com", "digest": DIGEST, "comment": "fine", "at": "2026-07-04T12:01:00Z"}],
    "rollbacks": [],
}
METRIC = {
    "metric": "errors",
    "outcome": "inconclusive",
    "sentence": "Errors: too few yet.",
    "tested": "mixture sequential test",
    "unit": "%",
    "holds": True,
    "canary": 1.25,
    "stable": 1.0,
    "difference": 0.25,
    "interval": {"low": None, "high": 2.125},
}
STEPS = [
    {"index": 0, "kind": "prewarm", "state": "passed", "spec": {"nodes": None}, "attempt": 2, "sentence": "On 2 of 2."},
    {
        "index": 3,
        "kind": "canary",
        "state": "running",
        "spec": {"tenants": ["acme", "beta"], "percent": 10.0},
        "attempt": 1,
        "started_at": "2026-07-04T12:05:00Z",
        "sentence": "It can't be told yet.",
        "verdict": {
            "outcome": "inconclusive",
            "sentence": "It can't be told yet.",
            "metrics": [METRIC],
            "requests": {"canary": 120, "stable": 1080},
        },
        "judged_at": "2026-07-04T12:09:00Z",
    },
]
ROLLBACK = {
    "tenant": "acme",
    "alias": "support",
    "release": 3,
    "revision": 9,
    "left": RELEASE["candidate"],
    "asked_at": "2026-07-04T12:10:00Z",
    "committed_at": "2026-07-04T12:10:00.041Z",
    "commit_ms": 41.2,
    "last_answer_at": "2026-07-04T12:10:00.800Z",
    "last_answer_ms": 800.0,
    "strays": 0,
    "settled_at": None,
}
PLACE = "tenants/acme/aliases/support/releases"
Asked = list[tuple[str, str, Any]]


class Server:
    """Answers by address, an address with several answers with one after the other; keeps what was asked."""

    def __init__(self) -> None:
        self.asked: Asked = []
        self.answers: dict[str, list[object]] = {
            "GET tenants/acme/releases": [{"results": [RELEASE], "next": None}],
            f"GET {PLACE}/3": [WHOLE],
            f"GET {PLACE}/3/timeline": [{"results": STEPS, "next": None}],
            "GET tenants/acme/aliases/support/rollbacks": [{"results": [ROLLBACK], "next": None}],
        }

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else dict(request.url.params)
        path = request.url.path.removeprefix("/api/v1/")
        self.asked.append((request.method, path, body))
        found = self.answers.get(f"{request.method} {path}", [WHOLE])
        return httpx.Response(200, json=found.pop(0) if len(found) > 1 else found[0])

    def changes(self) -> Asked:
        return [asked for asked in self.asked if asked[0] != "GET"]


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def run(server: Server) -> Callable[..., Result]:
    def invoke(*words: str, code: int = 0) -> Result:
        session = Session(environ=ENVIRON, transport=httpx.MockTransport(server), retry=RetryPolicy(attempts=1))
        result = CliRunner(env={"COLUMNS": "400"}).invoke(cli, list(words), obj=session)
        assert result.exit_code == code, result.output
        return result

    return invoke


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text("canary: [{percent: 25}]\n")
    return path


def test_a_release_is_made_by_a_template_or_a_plan(server: Server, run: Callable[..., Result], plan: Path) -> None:
    made = run("release", "make", "acme/support", "acme/tone@v2", "--template", "careful", "--reason", "softer")
    assert "acme/support release 3: progressing. It waits for 10 minutes" in made.stdout
    run("release", "make", "acme/support", "acme/tone@v2", "--plan", str(plan), "--expected-revision", "4")
    named = {"adapter": "tone", "version": "v2"}
    assert server.changes() == [
        ("POST", PLACE, {**named, "reason": "softer", "template": "careful"}),
        ("POST", PLACE, {**named, "reason": "", "plan_text": plan.read_text(), "expected_revision": 4}),
    ]


def test_who_makes_a_release_is_told_whose_turn_it_is(server: Server, run: Callable[..., Result]) -> None:
    server.answers[f"POST {PLACE}"] = [{**WHOLE, "approvals_given": 0}]
    made = run("release", "make", "acme/support", "acme/tone@v2")
    assert "lorekeeper release approve acme/support 3" in made.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("acme/support", "other/tone@v2"), 2, "one tenant"),
        (("acme/support", "acme/tone@v2", "--template", "a", "--plan", "{plan}"), 1, "not both"),
        (("acme/support", "acme/tone@v2", "--plan", "{bad}"), 1, "aprovals: there is no such key"),
    ],
)
def test_what_can_not_be_meant_is_not_sent(
    server: Server, run: Callable[..., Result], plan: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    bad = plan.with_name("bad.yaml")
    bad.write_text("aprovals: 1\n")
    names = {"plan": str(plan), "bad": str(bad)}
    refused = run("release", "make", *(word.format(**names) for word in words), code=code)
    assert said in refused.stderr
    assert server.asked == []


def test_an_approval_is_of_the_digest_that_was_looked_at(server: Server, run: Callable[..., Result]) -> None:
    refused = run("release", "approve", "acme/support", "3", "--digest", "0" * 64, code=1)
    assert "Look at it again" in refused.stderr
    shown = run("release", "approve", "acme/support", "3", "--digest", DIGEST, "--comment", "fine")
    assert "acme, beta + 10 %" in shown.stdout
    assert server.changes() == [("POST", f"{PLACE}/3/approve", {"digest": DIGEST, "comment": "fine"})]


@pytest.mark.parametrize("verb", ["start", "pause", "resume", "retry", "promote", "abort"])
def test_a_verb_is_about_the_newest_release_if_none_is_named(
    server: Server, run: Callable[..., Result], verb: str
) -> None:
    run("release", verb, "acme/support", "--reason", "why not")
    run("release", verb, "acme/support", "2", "--expected-revision", "7")
    assert server.asked == [
        ("GET", "tenants/acme/releases", {"alias": "support", "limit": "1"}),
        ("POST", f"{PLACE}/3/{verb}", {"reason": "why not"}),
        ("POST", f"{PLACE}/2/{verb}", {"reason": "", "expected_revision": 7}),
    ]


def test_a_rollback_says_how_long_it_took(server: Server, run: Callable[..., Result]) -> None:
    run("release", "rollback", "acme/support", "--reason", "slow")
    assert server.changes() == [("POST", f"{PLACE}/3/rollback", {"reason": "slow"})]
    server.answers[f"GET {PLACE}/3"] = [{**WHOLE, "state": "rolled_back", "rollbacks": [ROLLBACK]}]
    shown = run("release", "show", "acme/support").stdout
    assert "Rolled back in 41 ms. The last answer by tone@v2 ended 800 ms after the request for it." in shown
    assert "800" in run("release", "rollbacks", "acme/support").stdout
    assert json.loads(run("release", "rollbacks", "acme/support", "--json").stdout)["results"][0]["strays"] == 0


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"last_answer_at": None, "last_answer_ms": None}, "isn't known yet"),
        ({"last_answer_at": None, "last_answer_ms": None, "settled_at": "t"}, "tone@v2 gave no answer after it"),
        ({"strays": 2}, "still got it: 2"),
    ],
)
def test_what_is_not_known_of_a_rollback_is_not_made_up(
    server: Server, run: Callable[..., Result], facts: dict[str, object], said: str
) -> None:
    server.answers[f"GET {PLACE}/3"] = [{**WHOLE, "rollbacks": [{**ROLLBACK, **facts}]}]
    assert said in run("release", "show", "acme/support", "3").stdout


def test_a_release_is_shown_with_its_steps_and_what_the_judge_says(run: Callable[..., Result]) -> None:
    shown = run("release", "show", "acme/support").stdout
    for words in (
        "canary, 4 of 6",
        "careful#2",
        "1 of 1",
        "ben@example.com at 2026-07-04T12:01:00Z: fine",
        "prewarm (attempt 2)",
        "acme, beta + 10 %",
        "The judge on step 4 at 2026-07-04T12:09:00Z",
        "by 120 requests to the candidate and 1080 to stable: inconclusive",
        "It can't be told yet.",
        "inconclusive, holds",
        "1.25 %",
        "? and 2.12",
    ):
        assert words in shown
    found = json.loads(run("release", "show", "acme/support", "3", "--json").stdout)
    assert (found["release"]["number"], len(found["timeline"])) == (3, 2)


def test_what_a_release_waits_for_is_said_once(server: Server, run: Callable[..., Result]) -> None:
    server.answers[f"GET {PLACE}/3"] = [{**WHOLE, "sentence": "It can't be told yet."}]
    assert run("release", "show", "acme/support").stdout.count("It can't be told yet.") == 1


def test_releases_are_listed_by_what_is_asked_for(server: Server, run: Callable[..., Result]) -> None:
    server.answers["GET tenants/acme/releases"] = [
        {"results": [{**RELEASE, "state": "paused", "pause_kind": "gate"}], "next": None}
    ]
    listed = run("release", "list", "acme", "--alias", "support", "--active").stdout
    assert "paused (gate)" in listed
    assert server.asked == [("GET", "tenants/acme/releases", {"alias": "support", "active": "true"})]


def test_an_alias_without_a_release_is_told_so(server: Server, run: Callable[..., Result]) -> None:
    server.answers["GET tenants/acme/releases"] = [{"results": [], "next": None}]
    assert "acme/support has had no release yet." in run("release", "show", "acme/support", code=1).stderr


@pytest.mark.parametrize(("end", "code"), [("promoted", 0), ("rolled_back", 1)])
def test_watching_tells_each_change_once_and_ends_with_the_release(
    server: Server, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, end: str, code: int
) -> None:
    monkeypatch.setattr(releases, "_POLL_S", 0.0)
    server.answers[f"GET {PLACE}/3"] = [
        WHOLE,
        WHOLE,
        {**WHOLE, "step": 4},
        {**WHOLE, "state": end, "sentence": "Done."},
    ]
    lines = run("release", "watch", "acme/support", "3", code=code).stdout.splitlines()
    assert len(lines) == 3
    assert lines[-1] == f"acme/support release 3: {end}. Done."


def test_watching_ends_when_it_has_taken_too_long(run: Callable[..., Result]) -> None:
    late = run("release", "watch", "acme/support", "3", "--timeout", "0", code=1)
    assert "acme/support release 3 is still progressing after 0 s" in late.stderr


TEMPLATES = [
    {"tenant": "acme", "name": "careful", "number": 2, "digest": "ab", "written_by": "ada@example.com"},
    {"tenant": "acme", "name": "default", "number": 0, "digest": "cd", "written_by": None},
]


def test_templates_are_listed_shown_and_written(server: Server, run: Callable[..., Result], plan: Path) -> None:
    place = "tenants/acme/release-templates"
    server.answers[f"GET {place}"] = [{"results": TEMPLATES, "next": None}]
    server.answers[f"GET {place}/default"] = [{**TEMPLATES[1], "text": "", "document": {"approvals": 1}}]
    server.answers[f"GET {place}/careful"] = [{**TEMPLATES[0], "text": "approvals: 2 # two\n", "document": {}}]
    server.answers[f"PUT {place}/careful"] = server.answers[f"GET {place}/careful"]
    assert "built in" in run("release-template", "list", "acme").stdout
    assert '"approvals": 1' in run("release-template", "show", "acme").stdout
    assert "approvals: 2 # two" in run("release-template", "show", "acme", "careful", "--number", "2").stdout
    assert server.asked[-1][2] == {"number": "2"}
    assert "acme/careful, edition 2" in run("release-template", "write", "acme", "careful", str(plan)).stdout
    assert server.changes() == [("PUT", f"{place}/careful", {"text": plan.read_text()})]


def test_a_plan_is_checked_without_a_server(server: Server, run: Callable[..., Result], plan: Path) -> None:
    assert "A sound release plan." in run("release-template", "check", str(plan)).stdout
    plan.write_text(r'"\U00110000"')
    assert "out of range (line 1" in run("release-template", "check", str(plan), code=1).stderr
    plan.write_bytes(b"\xff")
    assert "is no release plan" in run("release-template", "check", str(plan), code=1).stderr
    assert server.asked == []
