"""The command line's words for releases, against the real API without a socket."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from client.cli.main import cli
from client.cli.session import Session
from registry.models import Version
from registry.states import Role
from releases.models import Alias, Release
from tests.api.releases.conftest import Caller, Member
from tests.factories.api_transport import ApiTransport
from tests.factories.releases import take_on

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
Run = Callable[..., Result]
PLAN = """\
shadow: null
canary: [{tenants: [acme], gate: true}, {tenants: [acme], percent: 25}]
"""


def running(caller: Caller) -> Run:
    """``running(ada)("release", "list", "acme")``: the command as that person."""
    environ = {"LOREKEEPER_URL": "http://testserver", "LOREKEEPER_TOKEN": caller.token}

    def invoke(*words: str, code: int = 0) -> Result:
        session = Session(environ=environ, transport=ApiTransport())
        result = CliRunner(env={"COLUMNS": "400"}).invoke(cli, list(words), obj=session)
        assert result.exit_code == code, result.output
        return result

    return invoke


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return str(path)


def shown(result: Result) -> Any:
    return json.loads(result.stdout)


def test_a_release_goes_from_a_template_to_its_end(
    ada: Caller, member: Member, versions: list[Version], file: str
) -> None:
    manager, reviewer = running(ada), running(member(Role.REVIEWER))
    assert "acme/gated, edition 1" in manager("release-template", "write", "acme", "gated", file).stdout
    assert "built in" in reviewer("release-template", "list", "acme").stdout
    made = manager("release", "make", "acme/support", "acme/tone@v2", "--template", "gated", "--reason", "softer")
    assert "acme/support release 1: pending" in made.stdout
    assert "lorekeeper release approve acme/support 1" in made.stderr
    assert "0 of the 1 approvals" in manager("release", "start", "acme/support", code=1).stderr
    assert "acme + 25 %" in reviewer("release", "approve", "acme/support", "--comment", "fine").stdout
    assert "prewarming" in manager("release", "start", "acme/support").stdout

    for _step in range(3):
        take_on(Release.objects.get())
    assert "paused (gate)" in manager("release", "list", "acme", "--active").stdout
    assert "progressing" in manager("release", "resume", "acme/support").stdout
    found = shown(reviewer("release", "show", "acme/support", "--json"))
    assert [step["state"] for step in found["timeline"]] == ["passed", "passed", "passed", "waiting", "waiting"]
    assert found["release"]["approvals"][0]["comment"] == "fine"
    assert "promoted" in manager("release", "promote", "acme/support", "1").stdout
    manager("release", "watch", "acme/support")
    assert Alias.objects.get(name="support").version == versions[1]


def test_a_release_that_goes_wrong_is_taken_back_and_its_time_is_told(
    ada: Caller, member: Member, versions: list[Version], file: str
) -> None:
    manager, operator = running(ada), running(member(Role.OPERATOR))
    file = str(Path(file).with_name("bold.yaml"))
    Path(file).write_text("approvals: 0\n")
    manager("release", "make", "acme/support", "acme/tone@v2", "--plan", file)
    manager("release", "start", "acme/support")
    assert "paused (person)" in operator("release", "pause", "acme/support", "--reason", "odd").stdout
    assert "rolled_back" in operator("release", "rollback", "acme/support", "--reason", "rude").stdout
    told = operator("release", "show", "acme/support").stdout
    assert "Rolled back in " in told
    assert "isn't known yet" in told
    (timing,) = shown(operator("release", "rollbacks", "acme/support", "--json"))["results"]
    assert (timing["release"], timing["left"]["version"]) == (1, "v2")
    operator("release", "watch", "acme/support", code=1)
    late = operator("release", "resume", "acme/support", "1", code=1)
    assert "can't be resumed" in late.stderr


def test_what_a_role_lacks_is_said(member: Member, versions: list[Version]) -> None:
    viewer = running(member(Role.VIEWER))
    refused = viewer("release", "make", "acme/support", "acme/tone@v2", code=1)
    assert "It takes: release_manager." in refused.stderr
    assert "Nothing there yet." in viewer("release", "list", "acme").stderr
