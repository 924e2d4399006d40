"""`lorekeeper alias at|protect|unprotect|share|unshare|shared`, over answers as the server gives them."""

import json
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from client.cli.main import cli
from client.cli.session import Session
from client.retry import RetryPolicy

ENVIRON = {"LOREKEEPER_URL": "http://registry.test", "LOREKEEPER_TOKEN": "lk_1"}

SPLIT = {
    "adapter": "tone",
    "version": "v3",
    "basis_points": 1000,
    "allow": ["globex"],
    "deny": [],
    "shadow_adapter": "tone",
    "shadow_version": "v4",
    "shadow_basis_points": 250,
    "revoked_at": None,
}
REVISION: dict[str, Any] = {
    "revision": 7,
    "adapter": "tone",
    "version": "v2",
    "kind": "move",
    "actor": {"kind": "person", "id": "rui@acme.example", "name": "Rui"},
    "reason": "better tone",
    "at": "2026-07-04T11:40:12Z",
    "revoked_at": None,
    "intervals": [{"valid_from": "2026-07-04T11:40:12Z", "valid_to": None, "split": SPLIT, "release": 3}],
}


Asked = list[tuple[str, str, Any]]


def run(*words: str, answer: object = None, asked: Asked | None = None) -> Result:
    def serve(request: httpx.Request) -> httpx.Response:
        if asked is not None:
            body = json.loads(request.content) if request.content else None
            asked.append((request.method, request.url.raw_path.decode().removeprefix("/api/v1/tenants/acme/"), body))
        return httpx.Response(204) if answer is None else httpx.Response(200, json=answer)

    session = Session(environ=ENVIRON, transport=httpx.MockTransport(serve), retry=RetryPolicy(attempts=1))
    return CliRunner(env={"COLUMNS": "400"}).invoke(cli, list(words), obj=session)


def fields(result: Result) -> dict[str, str]:
    assert result.exit_code == 0, result.output
    return {name: value.strip() for name, _gap, value in (line.partition("  ") for line in result.output.splitlines())}


def test_what_an_alias_stood_for_is_told_with_split_and_release() -> None:
    asked: Asked = []
    answer = {"results": [REVISION], "next": None}
    told = fields(run("alias", "at", "acme/support", "2026-07-04T12:00:00Z", answer=answer, asked=asked))
    assert told["version"] == "acme/tone@v2"
    assert (told["revision"], told["moved by"], told["reason"]) == ("7 (move)", "Rui", "better tone")
    assert (told["from"], told["until"]) == ("2026-07-04T11:40:12Z", "now")
    assert (told["candidate"], told["always"], told["shadow"]) == (
        "acme/tone@v3, 10 %",
        "globex",
        "acme/tone@v4, 2.5 %",
    )
    assert told["release"] == "3"
    assert not {"revoked", "candidate revoked", "never"} & set(told)
    assert asked == [("GET", "aliases/support/history?at=2026-07-04T12%3A00%3A00%2B00%3A00", None)]


def test_what_answered_nothing_any_more_is_told() -> None:
    split = {**SPLIT, "revoked_at": "2026-07-04T11:50:00Z", "shadow_version": None}
    interval = {**REVISION["intervals"][0], "split": split, "valid_to": "2026-07-05T00:00:00Z", "release": None}
    row = {**REVISION, "revoked_at": "2026-07-04T11:55:00Z", "intervals": [interval]}
    told = fields(run("alias", "at", "acme/support", "2026-07-04", answer={"results": [row]}))
    assert (told["revoked"], told["candidate revoked"]) == ("2026-07-04T11:55:00Z", "2026-07-04T11:50:00Z")
    assert told["until"] == "2026-07-05T00:00:00Z"
    assert not {"shadow", "release"} & set(told)


def test_a_time_before_the_alias_was_made_is_a_refusal() -> None:
    result = run("alias", "at", "acme/support", "2001-01-01", answer={"results": []})
    assert result.exit_code == 1
    assert "acme/support was made later." in result.output


@pytest.mark.parametrize("words", [("yesterday",), ()])
def test_without_a_time_that_can_be_read_nothing_is_asked(words: tuple[str, ...]) -> None:
    assert run("alias", "at", "acme/support", *words).exit_code == 2


def test_a_default_is_named_like_any_alias() -> None:
    asked: Asked = []
    answer = {"tenant": "acme", "name": "tone.default", "adapter": "tone", "version": "v1", "revision": 1}
    assert "acme/tone.default points at" in run("alias", "show", "acme/tone.default", answer=answer, asked=asked).output
    assert asked == [("GET", "aliases/tone.default", None)]


def test_an_alias_is_protected_and_made_free_again() -> None:
    asked: Asked = []
    answer = {"movers": ["rui@acme.example"], "needs_release": True, "changed_at": ""}
    said = run("alias", "protect", "acme/support", "--mover", "rui@acme.example", answer=answer, asked=asked).output
    assert said == "acme/support is protected: rui@acme.example may move it, by releases alone.\n"
    answer = {"movers": [], "needs_release": False}
    said = run("alias", "protect", "acme/support", "--directly", answer=answer, asked=asked).output
    assert "everybody whose role allows it may move it, directly or by releases" in said
    assert "not protected" in run("alias", "unprotect", "acme/support", asked=asked).output
    assert asked == [
        ("PUT", "aliases/support/protection", {"movers": ["rui@acme.example"], "needs_release": True}),
        ("PUT", "aliases/support/protection", {"movers": [], "needs_release": False}),
        ("DELETE", "aliases/support/protection", None),
    ]


def test_an_alias_says_that_it_is_protected() -> None:
    answer = {"tenant": "acme", "name": "support", "adapter": "tone", "version": "v1", "protection": {"movers": []}}
    assert "is protected" in run("alias", "show", "acme/support", answer=answer).output


def test_an_alias_is_shared_listed_and_taken_back() -> None:
    asked: Asked = []
    grant = {"tenant": "globex", "name": "assistant", "granted_at": "2026-07-04T11:40:12Z"}
    words = ("alias", "share", "acme/support", "globex", "--as", "assistant", "--reason", "asked for")
    assert run(*words, answer=grant, asked=asked).output == "globex may call acme/support as assistant.\n"
    listed = run("alias", "share", "acme/support", answer={"results": [grant]}, asked=asked).output
    assert listed.splitlines()[1].split() == ["globex", "assistant", "2026-07-04T11:40:12Z"]
    assert "may not call" in run("alias", "unshare", "acme/support", "globex", "--reason", "over", asked=asked).output
    assert asked == [
        ("POST", "aliases/support/grants", {"tenant": "globex", "name": "assistant", "reason": "asked for"}),
        ("GET", "aliases/support/grants", None),
        ("DELETE", "aliases/support/grants/globex?reason=over", None),
    ]


def test_a_tenant_lists_what_is_shared_with_it() -> None:
    asked: Asked = []
    rows = {"results": [{"name": "assistant", "granted_at": "2026-07-04T11:40:12Z"}]}
    said = run("alias", "shared", "acme", answer=rows, asked=asked).output
    assert said.splitlines()[1].split() == ["assistant", "2026-07-04T11:40:12Z"]
    assert asked == [("GET", "shared-aliases", None)]
