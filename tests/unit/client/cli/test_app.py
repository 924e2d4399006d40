import json
from pathlib import Path

import click
import httpx
import pytest
from click.testing import CliRunner, Result

from client.cli.app import JsonCommand, LorekeeperGroup
from client.cli.main import cli
from client.cli.session import Session
from client.retry import RetryPolicy

ENVIRON = {"LOREKEEPER_URL": "http://registry.test", "LOREKEEPER_TOKEN": "lk_1"}


def run(*args: str, answer: httpx.Response | Exception | None = None, environ: dict[str, str] | None = None) -> Result:
    def handler(request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        assert answer is not None, f"unexpected {request.method} {request.url}"
        return answer

    session = Session(
        environ=ENVIRON if environ is None else environ,
        transport=httpx.MockTransport(handler),
        retry=RetryPolicy(attempts=1),
    )
    return CliRunner().invoke(cli, args, obj=session)


def every_command(group: click.Group = cli, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            found += every_command(command, (*path, name))
        else:
            found.append((*path, name))
    return found


@pytest.mark.parametrize("path", every_command(), ids=" ".join)
def test_every_command_has_json_and_help(path: tuple[str, ...]) -> None:
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert "--json" in result.stdout


def test_a_refusal_is_one_sentence_on_stderr_and_exit_1() -> None:
    problem = httpx.Response(404, json={"code": "not_found", "detail": "There is no such alias.", "field": "alias"})
    result = run("alias", "show", "acme/none", answer=problem)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "Error: There is no such alias. Check the spelling; objects of other tenants aren't visible.\n"
    )


def test_a_refusal_with_json_is_an_object_on_stdout_and_exit_1() -> None:
    problem = httpx.Response(403, json={"code": "permission_denied", "detail": "Not yours.", "field": "digest"})
    result = run("alias", "show", "acme/none", "--json", answer=problem)
    assert (result.exit_code, result.stderr) == (1, "")
    error = json.loads(result.stdout)["error"]
    assert (error["code"], error["status"], error["field"], error["detail"]) == (
        "permission_denied",
        403,
        "digest",
        "Not yours.",
    )


@pytest.mark.parametrize(
    "args",
    [
        ("push",),
        ("unknown",),
        ("show", "acme/tone"),
        ("show", "acme/tone@v1", "--nope"),
        ("alias", "set", "acme/support", "other/tone@v1"),
        ("pull", "acme/tone@v1"),
        ("member", "add", "acme", "a@b.c", "emperor"),
        ("token", "create", "acme", "ci", "--scope", "read"),
        ("chat", "acme/support", "hi"),
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2_and_a_sentence(args: tuple[str, ...]) -> None:
    text = run(*args)
    assert (text.exit_code, text.stdout) == (2, "")
    assert text.stderr.startswith("Error: ")
    as_json = run(*args, "--json")
    assert as_json.exit_code == 2
    assert json.loads(as_json.stdout)["error"]["code"] == "usage"


def test_a_missing_configuration_ends_with_2_and_says_what_to_do(tmp_path: Path) -> None:
    result = run("whoami", environ={"XDG_CONFIG_HOME": str(tmp_path)})
    assert result.exit_code == 2
    assert "lorekeeper login" in result.stderr


def test_an_unreachable_server_ends_with_1_and_no_traceback() -> None:
    result = run("whoami", answer=httpx.ConnectError("Connection refused"))
    assert result.exit_code == 1
    assert "can't be reached" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_token_is_never_printed() -> None:
    result = run("whoami", answer=httpx.Response(500, text="boom"))
    assert "lk_1" not in result.output


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (FileNotFoundError(2, "gone", "x.json"), 1)])
def test_interrupts_and_local_failures_have_their_exit_codes(error: BaseException, code: int) -> None:
    @click.command(cls=JsonCommand)
    def broken() -> None:
        raise error

    group = LorekeeperGroup(name="test", commands={"broken": broken})
    result = CliRunner().invoke(group, ["broken"])
    assert result.exit_code == code
    assert "Traceback" not in result.output


def test_without_a_command_the_help_is_shown() -> None:
    result = run()
    assert result.exit_code == 2
    assert "Commands:" in result.output


def test_the_version_is_shown() -> None:
    assert run("--version").stdout.startswith("lorekeeper, version 0.")


def test_whoami_tells_roles_and_scopes() -> None:
    identity = {
        "person": {"email": "ada@acme.test", "name": "Ada"},
        "tenant": None,
        "scopes": ["read"],
        "kind": "person",
        "roles": {"acme": ["viewer"]},
        "is_platform_admin": False,
    }
    result = run("whoami", answer=httpx.Response(200, json=identity))
    assert result.exit_code == 0
    assert "Ada <ada@acme.test>" in result.stdout
    assert "acme: viewer" in result.stdout
    assert json.loads(run("whoami", "--json", answer=httpx.Response(200, json=identity)).stdout) == identity


def test_approve_without_a_digest_is_refused_before_it_is_asked_for() -> None:
    version = {"id": "1", "tenant": "acme", "adapter": "tone", "name": "v1", "state": "uploading"}
    result = run("approve", "acme/tone@v1", answer=httpx.Response(200, json=version))
    assert result.exit_code == 1
    assert "has no digest yet" in result.stderr


def test_approve_of_another_digest_than_the_reviewed_one_is_refused() -> None:
    version = {"id": "1", "tenant": "acme", "adapter": "tone", "name": "v1", "state": "candidate", "root_digest": "ab"}
    result = run("approve", "acme/tone@v1", "--digest", "cd", answer=httpx.Response(200, json=version))
    assert result.exit_code == 1
    assert "not the reviewed cd" in result.stderr


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["text", "json"])
def test_a_terminal_that_cannot_show_a_character_gets_it_escaped(words: list[str]) -> None:
    identity = {"person": {"name": "Łukasz", "email": "j@example.test"}, "scopes": [], "roles": {}}
    session = Session(
        environ=ENVIRON,
        transport=httpx.MockTransport(lambda _: httpx.Response(200, json=identity)),
        retry=RetryPolicy(attempts=1),
    )
    result = CliRunner(charset="latin-1").invoke(cli, ["whoami", *words], obj=session)
    assert (result.exit_code, result.exception) == (0, None)
    if words:
        assert json.loads(result.stdout)["person"]["name"] == "Łukasz"
    else:
        assert "\\u0141ukasz" in result.stdout
