"""Trusting the registry's keys, and signing as a pipeline."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from client import LorekeeperClient, PairRef, RetryPolicy, VersionRef
from client.cli.main import cli
from client.cli.session import Session
from registry.signing.keys import TrustedKeys
from registry.signing.local_key import generate_key_file
from registry.signing.pipeline_bundle import key_id_in, verify_pipeline_bundle
from tests.factories.signed_folders import read_folder
from tests.integration.client.fake_registry import FakeRegistry

Run = Callable[..., Result]
RunJson = Callable[..., Any]
REF = VersionRef("acme", "tone", "v1")
KEY = {"tenant": "acme", "name": "nightly", "key_id": "f" * 64, "public_key": "PEM", "revoked_reason": ""}
SIGNATURE = {"key": "nightly", "key_id": "f" * 64, "bundle": "{}", "trusted": True}


@pytest.fixture
def pulled(client: LorekeeperClient, folder: Path, tmp_path: Path) -> Path:
    client.push(folder, PairRef("acme", "tone"), base_revision="r1", name="v1")
    version = client.versions.wait(REF, sleep=lambda _seconds: None)
    client.versions.approve(REF, digest=version.root_digest or "")
    client.pull(REF, tmp_path / "pulled")
    return tmp_path / "pulled"


def offline(*args: object, environ: dict[str, str]) -> Result:
    """Run without a server: whoever asks one fails."""
    transport = httpx.MockTransport(lambda request: pytest.fail(f"asked {request.url}"))
    return CliRunner().invoke(cli, [str(arg) for arg in args], obj=Session(environ=environ, transport=transport))


def test_keys_that_were_trusted_once_verify_offline_and_check_every_pull(
    pulled: Path, registry: FakeRegistry, environ: dict[str, str], run: Run, run_json: RunJson, tmp_path: Path
) -> None:
    home = {name: environ[name] for name in ("XDG_CONFIG_HOME", "HOME")}
    missing = offline("verify", pulled, environ=home)
    assert (missing.exit_code, "lorekeeper key trust" in missing.stderr) == (2, True)
    assert run_json("key", "trust")["keys"] == [registry.signer.key_id]
    done = offline("verify", pulled, environ=home)
    assert done.exit_code == 0, done.output
    assert registry.signer.key_id in done.stdout
    assert run_json("pull", REF, tmp_path / "again")["verified"] is True
    (pulled / "README.md").write_text("changed")
    assert offline("verify", pulled, environ=home).exit_code == 1


def test_trusted_keys_that_the_environment_names_and_are_not_there_are_an_error_and_not_none(
    pulled: Path, environ: dict[str, str], run: Run, tmp_path: Path
) -> None:
    environ["LOREKEEPER_TRUSTED_KEYS"] = str(tmp_path / "gone.pem")
    for args in (("verify", pulled), ("pull", REF, tmp_path / "again")):
        result = run(*args)
        assert (result.exit_code, "gone.pem isn't there" in result.stderr) == (2, True)
    assert not (tmp_path / "again").exists()


def test_published_keys_are_listed(registry: FakeRegistry, run: Run) -> None:
    assert registry.signer.key_id in run("key", "list").stdout


def test_a_folder_is_signed_as_the_public_tool_would(run_json: RunJson, folder: Path, tmp_path: Path) -> None:
    signer = generate_key_file(tmp_path / "pipeline.pem")
    (tmp_path / "pipeline.pub").write_text(signer.public_pem())
    bundle = tmp_path / "pipeline.sig"
    done = run_json("pipeline", "sign", folder, "--key", tmp_path / "pipeline.pem", "--output", bundle)
    assert done["key_id"] == signer.key_id == key_id_in(bundle.read_text())
    key = TrustedKeys.from_pem(signer.public_pem()).find(signer.key_id)
    verify_pipeline_bundle(bundle.read_text(), key, read_folder(folder))
    tool = [sys.executable, "-m", "model_signing", "verify", "key", str(folder), "--signature", str(bundle)]
    subprocess.run([*tool, "--public_key", str(tmp_path / "pipeline.pub")], check=True, timeout=60)


def test_a_bundle_does_not_go_into_what_it_signs(run: Run, folder: Path, tmp_path: Path) -> None:
    generate_key_file(tmp_path / "pipeline.pem")
    result = run("pipeline", "sign", folder, "--key", tmp_path / "pipeline.pem", "--output", folder / "model.sig")
    assert (result.exit_code, (folder / "model.sig").exists()) == (1, False)
    (tmp_path / "noise.pem").write_text("noise")
    result = run("pipeline", "sign", folder, "--key", tmp_path / "noise.pem", "--output", tmp_path / "out.sig")
    assert (result.exit_code, "can't be signed" in result.stderr) == (1, True)


def asked(answer: object, *args: object) -> tuple[str, str, Any, Result]:
    """Run a command against a server with one answer; what it asked, and how the run ended."""
    requests: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json=answer)

    session = Session(
        environ={"LOREKEEPER_URL": "http://registry.test", "LOREKEEPER_TOKEN": "lk_1"},
        transport=httpx.MockTransport(handler),
        retry=RetryPolicy(attempts=1),
    )
    result = CliRunner().invoke(cli, [str(arg) for arg in args], obj=session)
    (request,) = requests
    body = json.loads(request.content) if request.content else None
    return request.method, request.url.path.removeprefix("/api/v1/"), body, result


def test_pipeline_commands_ask_for_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "key.pub").write_text("PEM")
    (tmp_path / "pipeline.sig").write_text("{}")
    version = "tenants/acme/adapters/tone/versions/v1/pipeline-signatures"
    keys, policy = "tenants/acme/pipeline-keys", "tenants/acme/signing-policy"
    on, off = {"require_pipeline_signature": True}, {"require_pipeline_signature": False}
    table: list[tuple[object, tuple[object, ...], tuple[str, str, Any], str]] = [
        (
            KEY,
            ("register", "acme", "nightly", tmp_path / "key.pub"),
            ("POST", keys, {"name": "nightly", "public_key": "PEM"}),
            "trusts",
        ),
        ({"results": [KEY], "next": None}, ("keys", "acme"), ("GET", keys, None), "nightly"),
        (
            KEY,
            ("revoke", "acme", "f" * 64, "--reason", "leaked"),
            ("POST", f"{keys}/{'f' * 64}/revoke", {"reason": "leaked"}),
            "revoked",
        ),
        (on, ("require", "acme"), ("PUT", policy, on), "takes only versions"),
        (off, ("require", "acme", "--off"), ("PUT", policy, off), "without"),
        (
            SIGNATURE,
            ("attach", REF, tmp_path / "pipeline.sig"),
            ("POST", version, {"bundle": "{}"}),
            "signed by nightly",
        ),
        ({"results": [SIGNATURE], "next": None}, ("signatures", REF), ("GET", version, None), "yes"),
    ]
    for answer, args, request, word in table:
        *found, result = asked(answer, "pipeline", *args)
        assert (tuple(found), result.exit_code) == (request, 0), result.output
        assert word in result.stdout
