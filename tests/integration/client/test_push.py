import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from client import LorekeeperClient, PairRef, TransferFailed, UploadIncomplete, VersionExists, VersionRef
from tests.integration.client.fake_registry import FakeRegistry

TONE = PairRef("acme", "tone")
Command = tuple[list[str], dict[str, str]]
Run = Callable[..., Result]


def test_a_folder_becomes_a_candidate(registry: FakeRegistry, run_json: Callable[..., Any], folder: Path) -> None:
    done = run_json("push", folder, "acme/tone", "--base-revision", "r1", "--wait")
    assert done["version"]["state"] == "candidate"
    assert done["version"]["name"] == "2026-07-04.1"
    assert (done["files"], done["moved_files"], done["resumed"]) == (3, 3, False)
    assert done["moved_bytes"] == sum(path.stat().st_size for path in folder.iterdir())
    assert done["report"]["verdict"] == "accept"
    assert sorted(registry.objects.values()) == sorted(path.read_bytes() for path in folder.iterdir())


def test_a_rejected_version_ends_with_1_and_its_reasons(registry: FakeRegistry, run: Run, folder: Path) -> None:
    registry.reject = [
        {"name": "numerics", "verdict": "fail", "code": "not_finite", "message": "lora_A has 3 NaN values."},
        {"name": "files", "verdict": "pass", "code": "ok", "message": ""},
    ]
    result = run("push", folder, "acme/tone", "--base-revision", "r1", "--wait")
    assert result.exit_code == 1
    assert "acme/tone@2026-07-04.1: rejected" in result.stdout
    assert "lora_A has 3 NaN values." in result.stdout


def test_a_rejected_version_is_an_error_in_json_too(
    registry: FakeRegistry, run_json: Callable[..., Any], folder: Path
) -> None:
    registry.reject = [{"name": "numerics", "verdict": "fail", "code": "not_finite", "message": "NaN."}]
    done = run_json("push", folder, "acme/tone", "--base-revision", "r1", "--wait", exit_code=1)
    assert done["error"] == {"code": "version_rejected", "detail": "NaN."}
    assert done["report"]["reasons"][0]["code"] == "not_finite"


def test_without_wait_the_version_is_validating(run_json: Callable[..., Any], folder: Path) -> None:
    assert run_json("push", folder, "acme/tone", "--base-revision", "r1")["version"]["state"] == "validating"


def test_a_symlink_ends_with_1_and_nothing_is_created(registry: FakeRegistry, run: Run, folder: Path) -> None:
    (folder / "extra.json").symlink_to("adapter_config.json")
    result = run("push", folder, "acme/tone", "--base-revision", "r1")
    assert result.exit_code == 1
    assert "extra.json is a symlink" in result.stderr
    assert registry.versions == {}


def test_a_store_in_trouble_is_asked_again(registry: FakeRegistry, client: LorekeeperClient, folder: Path) -> None:
    registry.put_statuses = [503, 502, 504]
    result = client.push(folder, TONE, base_revision="r1")
    assert result.moved_files == 3
    assert len(registry.puts) == 6


def test_expired_urls_are_renewed_once(registry: FakeRegistry, client: LorekeeperClient, folder: Path) -> None:
    registry.put_statuses = [403]
    result = client.push(folder, TONE, base_revision="r1", name="v1", workers=1)
    assert result.version.state == "validating"
    registry.put_statuses = [403] * 9
    (folder / "README.md").write_text("another")
    with pytest.raises(TransferFailed, match=r"README\.md was refused"):
        client.push(folder, TONE, base_revision="r1", name="v2", workers=1)


def test_a_refused_file_is_named_and_a_second_push_continues(
    registry: FakeRegistry, client: LorekeeperClient, folder: Path
) -> None:
    registry.put_statuses = [200, 400]
    with pytest.raises(TransferFailed, match="Trouble: On order"):
        client.push(folder, TONE, base_revision="r1", workers=1)
    first = len(registry.puts)
    result = client.push(folder, TONE, base_revision="r1", workers=1)
    assert (result.resumed, result.moved_files, result.version.name) == (True, 2, "2026-07-04.1")
    assert len(registry.puts) - first == 2
    assert list(registry.versions) == ["2026-07-04.1"]


def test_a_412_counts_as_stored_and_moves_nothing(
    registry: FakeRegistry, client: LorekeeperClient, folder: Path
) -> None:
    registry.put_statuses = [412, 200, 200]
    with pytest.raises(UploadIncomplete) as caught:  # the store said so wrongly; the server is the judge
        client.push(folder, TONE, base_revision="r1", workers=1)
    assert caught.value.field == "README.md"
    assert client.push(folder, TONE, base_revision="r1").moved_files == 1


def test_the_same_push_again_finds_its_version(client: LorekeeperClient, folder: Path) -> None:
    first = client.push(folder, TONE, base_revision="r1", name="v1")
    client.versions.wait(VersionRef("acme", "tone", "v1"), sleep=lambda _seconds: None)
    again = client.push(folder, TONE, base_revision="r1", name="v1")
    assert (again.version.id, again.version.state, again.moved_files) == (first.version.id, "candidate", 0)


@pytest.mark.parametrize("name", [None, "v1"])
def test_a_token_that_may_only_upload_can_push(
    registry: FakeRegistry, client: LorekeeperClient, folder: Path, name: str | None
) -> None:
    registry.readable = False
    assert client.push(folder, TONE, base_revision="r1", name=name).version.state == "validating"


def test_other_files_under_a_taken_name_are_refused(run: Run, client: LorekeeperClient, folder: Path) -> None:
    client.push(folder, TONE, base_revision="r1", name="v1")
    (folder / "README.md").write_text("changed")
    with pytest.raises(VersionExists):
        client.push(folder, TONE, base_revision="r1", name="v1")
    result = run("push", folder, "acme/tone", "--version", "v1", "--base-revision", "r1")
    assert result.exit_code == 1
    assert "Without --version" in result.stderr


@pytest.mark.parametrize("name", [None, "v1"])
def test_a_killed_push_continues_under_its_name(
    registry: FakeRegistry, command: Command, run_json: Callable[..., Any], folder: Path, name: str | None
) -> None:
    options = ["--base-revision", "r1", "--workers", "1", *(["--version", name] if name else [])]
    start, environ = command
    registry.put_delay_s = 0.4
    process = subprocess.Popen([*start, "push", str(folder), "acme/tone", *options], env=environ)
    _wait_for(lambda: len(registry.objects) == 1)
    process.kill()
    assert process.wait(10) == -signal.SIGKILL
    registry.put_delay_s = 0.0
    _wait_for(lambda: len(registry.puts) >= 1)
    done = run_json("push", folder, "acme/tone", *options)
    assert list(registry.versions) == [name or "2026-07-04.1"]
    assert done["resumed"] is True
    assert done["moved_files"] <= 2
    assert done["version"]["state"] == "validating"


def test_ctrl_c_stops_a_push_with_130_and_no_traceback(registry: FakeRegistry, command: Command, folder: Path) -> None:
    start, environ = command
    registry.put_delay_s = 2.0
    arguments = ["push", str(folder), "acme/tone", "--base-revision", "r1", "--workers", "1"]
    # A shell's background job is started with this signal ignored, and passes that on.
    heeding = ["env", "--default-signal=INT", *start, *arguments]
    process = subprocess.Popen(heeding, env=environ, stderr=subprocess.PIPE, text=True)
    _wait_for(lambda: ("POST", "/api/v1/tenants/acme/adapters/tone/versions") in registry.seen)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=15)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert "Stopped." in stderr


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
