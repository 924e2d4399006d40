import json
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from client.cli.main import cli
from client.cli.session import Session
from client.retry import RetryPolicy

ENVIRON = {"LOREKEEPER_URL": "http://registry.test", "LOREKEEPER_TOKEN": "lk_1"}
HOOK = {
    "tenant": "acme",
    "name": "ci",
    "url": "https://receiver.example/events",
    "kinds": ["version.*"],
    "created_at": "2026-07-04T12:00:00Z",
    "previous_secret_until": None,
    "failing_since": None,
    "disabled_at": None,
    "disabled_reason": "",
}
ATTEMPT = {"number": 1, "at": "t", "status": 503, "took_ms": 12, "excerpt": "not now", "error": ""}
DELIVERY = {
    "id": 17,
    "event": "acme_7",
    "kind": "version.revoked",
    "state": "pending",
    "created_at": "t",
    "next_at": "later",
    "ended_at": None,
    "again_of": None,
    "attempts": [ATTEMPT, {**ATTEMPT, "number": 2, "status": None, "error": "no answer within 10 s", "excerpt": ""}],
}
Asked = list[tuple[str, str, Any]]


def run(answer: object, *words: str, asked: Asked | None = None) -> Result:
    def serve(request: httpx.Request) -> httpx.Response:
        if asked is not None:
            body = json.loads(request.content) if request.content else None
            asked.append((request.method, request.url.raw_path.decode().removeprefix("/api/v1/"), body))
        return httpx.Response(204) if answer is None else httpx.Response(200, json=answer)

    session = Session(environ=ENVIRON, transport=httpx.MockTransport(serve), retry=RetryPolicy(attempts=1))
    return CliRunner(env={"COLUMNS": "400"}).invoke(cli, ["webhook", *words], obj=session)


def test_a_secret_is_printed_alone_so_that_it_can_be_put_away() -> None:
    asked: Asked = []
    made = {**HOOK, "secret": "whsec_abc"}
    words = ("create", "acme", "ci", "https://receiver.example/events", "--kind", "version.*", "--kind", "node.lost")
    result = run(made, *words, asked=asked)
    assert (result.exit_code, result.stdout) == (0, "whsec_abc\n")
    assert "isn't shown again" in result.stderr
    body = {"name": "ci", "url": "https://receiver.example/events", "kinds": ["version.*", "node.lost"]}
    assert asked == [("POST", "tenants/acme/webhooks", body)]
    assert run(made, "rotate-secret", "acme", "ci", "--overlap-hours", "2", asked=asked).stdout == "whsec_abc\n"
    assert asked[-1] == ("POST", "tenants/acme/webhooks/ci/rotate-secret", {"overlap_hours": 2})


def test_without_a_kind_it_is_wrong_usage() -> None:
    result = run(HOOK, "create", "acme", "ci", "https://receiver.example/")
    assert result.exit_code == 2
    assert "--kind" in result.stderr


def test_platform_stands_for_the_platforms_own() -> None:
    asked: Asked = []
    run({"results": [HOOK], "next": None}, "list", "platform", asked=asked)
    run(HOOK, "show", "platform", "ci", asked=asked)
    assert [path for _method, path, _body in asked] == ["webhooks", "webhooks/ci"]


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, "enabled"),
        ({"failing_since": "yesterday"}, "failing since yesterday"),
        ({"disabled_at": "now", "disabled_reason": "it is gone", "failing_since": "y"}, "disabled: it is gone"),
    ],
)
def test_a_list_says_how_each_does(facts: dict[str, str], state: str) -> None:
    hook = {**HOOK, **facts}
    assert state in run({"results": [hook], "next": None}, "list", "acme").stdout
    assert state in run(hook, "show", "acme", "ci").stdout


def test_a_change_keeps_what_is_not_named() -> None:
    asked: Asked = []
    run(HOOK, "change", "acme", "ci", "--kind", "release.*", asked=asked)
    assert asked[-1] == ("PUT", "tenants/acme/webhooks/ci", {"url": HOOK["url"], "kinds": ["release.*"]})
    run(HOOK, "change", "acme", "ci", "--url", "https://other.example/", asked=asked)
    assert asked[-1][2] == {"url": "https://other.example/", "kinds": ["version.*"]}


def test_it_is_disabled_enabled_and_removed() -> None:
    asked: Asked = []
    run(HOOK, "disable", "acme", "ci", "--reason", "moving", asked=asked)
    run(HOOK, "enable", "acme", "ci", "--skip-missed", asked=asked)
    removed = run(None, "remove", "acme", "ci", asked=asked)
    assert "told of nothing any more" in removed.stdout
    assert asked == [
        ("POST", "tenants/acme/webhooks/ci/disable", {"reason": "moving"}),
        ("POST", "tenants/acme/webhooks/ci/enable", {"skip_missed": True}),
        ("DELETE", "tenants/acme/webhooks/ci", None),
    ]


def test_deliveries_are_listed_with_their_last_answer() -> None:
    asked: Asked = []
    answer = {"results": [DELIVERY, {**DELIVERY, "id": 16, "attempts": [ATTEMPT]}], "next": None}
    result = run(answer, "deliveries", "acme", "ci", "--state", "pending", "--kind", "version.revoked", asked=asked)
    assert "no answer within 10 s (12 ms)" in result.stdout
    assert "503 (12 ms)" in result.stdout
    assert asked[0][1] == "tenants/acme/webhooks/ci/deliveries?state=pending&kind=version.revoked"
    one = run(answer, "deliveries", "acme", "ci", "--limit", "1", "--json")
    assert [each["id"] for each in json.loads(one.stdout)["results"]] == [17]


def test_a_delivery_is_shown_with_attempts_and_body_and_sent_again() -> None:
    asked: Asked = []
    shown = run({**DELIVERY, "body": '{"type":"version.revoked"}'}, "delivery", "acme", "ci", "17", asked=asked)
    assert "not now" in shown.stdout
    assert '{"type":"version.revoked"}' in shown.stdout
    run(DELIVERY, "redeliver", "acme", "ci", "17", asked=asked)
    run(DELIVERY, "ping", "acme", "ci", asked=asked)
    assert [(method, path) for method, path, _body in asked] == [
        ("GET", "tenants/acme/webhooks/ci/deliveries/17"),
        ("POST", "tenants/acme/webhooks/ci/deliveries/17/redeliver"),
        ("POST", "tenants/acme/webhooks/ci/ping"),
    ]
