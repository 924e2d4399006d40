import json
import os
import signal
import sys
from pathlib import Path

import pytest

from workers.node.engines.restart import CommandRestarter, parse_command
from workers.node.errors import RestartError


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code, *arguments)


@pytest.mark.parametrize("text", ["systemctl restart vllm", "{}", '"vllm"', "[1]", '[""]', '["a\\u0000b"]', "[[]]"])
def test_what_is_no_list_of_texts_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a JSON list of texts"):
        parse_command(text)


def test_a_list_of_texts_is_the_command() -> None:
    assert parse_command('["systemctl", "restart", "vllm"]') == ("systemctl", "restart", "vllm")
    assert parse_command("[]") == ()


def test_no_shell_reads_the_arguments(tmp_path: Path) -> None:
    code = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(sys.argv[2])"
    CommandRestarter(python(code, str(tmp_path / "told"), "$HOME; echo 'x' | cat")).restart()
    assert (tmp_path / "told").read_text() == "$HOME; echo 'x' | cat"


def test_the_command_gets_none_of_the_agents_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOREKEEPER_NODE_TOKEN", "lk_secret")
    monkeypatch.setenv("FLEET", "west")
    code = "import os, sys, json, pathlib; pathlib.Path(sys.argv[1]).write_text(json.dumps(dict(os.environ)))"
    CommandRestarter(python(code, str(tmp_path / "told"))).restart()
    told = json.loads((tmp_path / "told").read_text())
    assert told["FLEET"] == "west"
    assert not [name for name in told if name.startswith("LOREKEEPER_")]


def test_without_a_command_there_is_no_way() -> None:
    restarter = CommandRestarter(())
    assert not restarter.available
    with pytest.raises(RestartError, match="LOREKEEPER_NODE_ENGINE_RESTART"):
        restarter.restart()


def test_a_failure_is_told_with_its_last_words() -> None:
    restarter = CommandRestarter(python("print('no such unit\\x1b[2J'); raise SystemExit(5)"))
    assert restarter.available
    with pytest.raises(RestartError, match=r"ended with 5: no such unit \[2J") as caught:
        restarter.restart()
    assert caught.value.error_class == "transient"


def test_a_command_that_is_not_there_is_told() -> None:
    with pytest.raises(RestartError, match="can't be run"):
        CommandRestarter(("/nowhere/restart",)).restart()


def test_an_engine_that_the_command_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, pathlib;"
        "left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "pathlib.Path(sys.argv[1]).write_text(str(left.pid))"
    )
    CommandRestarter(python(code, str(tmp_path / "pid")), timeout_s=30).restart()
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_command_that_does_not_end_is_ended() -> None:
    with pytest.raises(RestartError, match=r"not done after 0\.2 s"):
        CommandRestarter(python("import time; time.sleep(60)"), timeout_s=0.2).restart()


def test_a_command_of_another_user_that_can_not_be_ended_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(pid: int, sign: int) -> None:
        kill(pid, sign)
        raise PermissionError(1, "Operation not permitted")

    kill = os.killpg
    monkeypatch.setattr("os.killpg", forbidden)
    with pytest.raises(RestartError, match=r"not done after 0\.2 s, and can't be ended: .*not permitted"):
        CommandRestarter(python("import time; time.sleep(60)"), timeout_s=0.2).restart()


def test_no_place_for_its_output_does_not_hide_that_it_could_not_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("workers.node.engines.restart.TemporaryFile", full)
    with pytest.raises(RestartError, match="No space left"):
        CommandRestarter(python("pass")).restart()
