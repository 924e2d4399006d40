import json
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from cryptography.hazmat.primitives.asymmetric import ec
from safetensors.numpy import save_file

from client import LorekeeperClient, PairRef, VersionRef
from registry.signing.checkpoints import AuditCheckpoint, sign_checkpoint
from registry.signing.keys import render_trusted_key
from registry.signing.local_key import LocalKeySigner, generate_key_file
from tests.integration.client.fake_registry import TOKEN, FakeRegistry

Run = Callable[..., Result]
RunJson = Callable[..., Any]


@pytest.fixture
def pushed(client: LorekeeperClient, folder: Path) -> str:
    client.push(folder, PairRef("acme", "tone"), base_revision="r1", name="v1")
    client.versions.wait(VersionRef("acme", "tone", "v1"), sleep=lambda _seconds: None)
    return "acme/tone@v1"


def test_login_checks_the_token_and_stores_it_for_its_owner_only(
    environ: dict[str, str], run: Run, tmp_path: Path
) -> None:
    del environ["LOREKEEPER_TOKEN"]
    result = run("login", "--url", environ["LOREKEEPER_URL"] + "/", "--token-stdin", stdin=f"{TOKEN}\n")
    assert result.exit_code == 0, result.output
    assert "as Ada <ada@acme.test>" in result.stdout
    assert TOKEN not in result.output
    path = tmp_path / "config" / "lorekeeper" / "config.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    del environ["LOREKEEPER_URL"]
    assert run("whoami").exit_code == 0


def test_a_wrong_token_is_not_stored(environ: dict[str, str], run: Run, tmp_path: Path) -> None:
    result = run("login", "--token-stdin", stdin="lk_000000000000_wrong\n")
    assert result.exit_code == 1
    assert "The token is unknown." in result.stderr
    assert not (tmp_path / "config").exists()


@pytest.mark.parametrize("stdin", ["", "two words\n", "tökén\n"])
def test_a_token_that_is_none_is_wrong_usage(run: Run, stdin: str) -> None:
    assert run("login", "--token-stdin", stdin=stdin).exit_code == 2


def test_without_a_terminal_login_says_which_option_is_missing(environ: dict[str, str], run: Run) -> None:
    del environ["LOREKEEPER_TOKEN"]
    result = run("login")
    assert result.exit_code == 2
    assert "--token-stdin" in result.stderr


def test_versions_show_and_report_tell_the_state_and_the_reasons(
    registry: FakeRegistry, run: Run, run_json: RunJson, pushed: str
) -> None:
    registry.reject = [{"name": "shapes", "verdict": "fail", "code": "wrong_base", "message": "q_proj has 576 inputs."}]
    assert run_json("versions", "acme/tone")["results"][0]["name"] == "v1"
    assert "v1" in run("versions", "acme/tone").stdout
    shown = run("show", pushed)
    assert "q_proj has 576 inputs." in shown.stdout
    assert "adapter_model.safetensors" in shown.stdout
    assert run_json("show", pushed)["version"]["files"][0]["path"] == "README.md"
    assert run_json("report", pushed)["checks"][0]["code"] == "wrong_base"


def test_approve_sends_the_digest_that_it_shows(registry: FakeRegistry, run: Run, pushed: str) -> None:
    digest = registry.versions["v1"]["root_digest"]
    result = run("approve", pushed, "--comment", "fine")
    assert result.exit_code == 0, result.output
    assert f"with digest {digest}" in result.stderr
    assert registry.versions["v1"]["approvals"][0]["digest"] == digest


def test_an_alias_is_split_and_made_whole_again(run: Run, run_json: RunJson, registry: FakeRegistry) -> None:
    run("alias", "set", "acme/support", "acme/tone@v1")
    wish = ("--percent", "2.5", "--allow", "acme", "--shadow", "acme/tone@v3", "--shadow-percent", "10")
    said = run("alias", "split", "acme/support", "acme/tone@v2", *wish).stdout
    assert "acme/tone@v2 answers 2.5 % of its requests" in said
    assert "acme/tone@v3 gets a copy of 10 % of them" in said
    split = run_json("alias", "show", "acme/support")["split"]
    assert (split["basis_points"], split["allow"], split["shadow_basis_points"]) == (250, ["acme"], 1000)
    assert run_json("alias", "split", "acme/support", "--clear", "--reason", "worse")["split"] is None
    assert registry.aliases["support"][-1]["reason"] == "worse"


@pytest.mark.parametrize("words", [(), ("acme/tone@v2", "--clear"), ("other/tone@v2",)])
def test_a_split_names_one_candidate_of_the_aliass_tenant_or_is_cleared(run: Run, words: tuple[str, ...]) -> None:
    assert run("alias", "split", "acme/support", *words).exit_code == 2


def test_an_alias_is_set_moved_and_rolled_back(run: Run, run_json: RunJson, registry: FakeRegistry) -> None:
    assert run_json("alias", "set", "acme/support", "acme/tone@v1")["revision"] == 1
    assert "points at acme/tone@v2 (revision 2)" in run("alias", "set", "acme/support", "acme/tone@v2").stdout
    assert run_json("rollback", "acme/support")["version"] == "v1"
    assert run_json("alias", "show", "acme/support")["revision"] == 3
    kinds = [row["kind"] for row in run_json("alias", "history", "acme/support")["results"]]
    assert kinds == ["rollback", "move", "set"]
    assert "tone@v2" in run("alias", "history", "acme/support").stdout


def test_chat_streams_and_tells_version_and_time_to_first_token(run: Run, run_json: RunJson) -> None:
    result = run("chat", "acme/support", "Hi", "--stream")
    assert (result.exit_code, result.stdout) == (0, "Ahoy there\n")
    assert "[acme/tone@v1, first token after " in result.stderr
    done = run_json("chat", "acme/support", "Hi", "--stream")
    assert (done["content"], done["version"]) == ("Ahoy there", "acme/tone@v1")
    assert 0 < done["ttft_ms"] < done["total_ms"]


def test_chat_without_stream_gives_the_whole_answer(run_json: RunJson) -> None:
    done = run_json("chat", "acme/support", "Hi")
    assert (done["content"], done["ttft_ms"]) == ("Ahoy there", None)


def test_an_answer_is_marked_by_the_id_that_the_chat_told(run: Run, run_json: RunJson) -> None:
    request_id = run_json("chat", "acme/support", "Hi")["headers"]["x-lorekeeper-request-id"]
    assert run_json("feedback", request_id, "down") == {
        "object": "feedback",
        "request_id": request_id,
        "name": "quality",
        "mark": 0,
    }
    assert run_json("feedback", request_id, "0.25", "--name", "tone")["mark"] == 0.25
    assert "req-7 is marked 1 (quality)" in run("feedback", request_id, "up").stderr
    assert "No such id" in run("feedback", "req-8", "up").stderr


@pytest.mark.parametrize("mark", ["2", "-1", "nan", "good", ""])
def test_what_is_no_mark_is_not_sent(run: Run, registry: FakeRegistry, mark: str) -> None:
    result = run("feedback", "req-7", "--", mark)
    assert (result.exit_code, ("POST", "/v1/feedback") in registry.seen) == (2, False)
    assert "number from 0 to 1" in result.stderr


def test_an_intact_audit_log_verifies_online_and_offline(
    registry: FakeRegistry, environ: dict[str, str], run: Run, run_json: RunJson, tmp_path: Path
) -> None:
    for action in ("tenant:member:add", "adapter:version:upload", "adapter:version:approve"):
        registry.record(action)
    head = registry.audit[-1]["hash"]
    assert "is intact: 3 records" in run("audit", "verify", "acme", "--expect-head", head).stdout
    assert run_json("audit", "export", "acme", "-o", tmp_path / "log.jsonl")["records"] == 3
    del environ["LOREKEEPER_URL"]
    done = run_json("audit", "verify", "acme", "--file", tmp_path / "log.jsonl")
    assert (done["intact"], done["records"], done["head"]) == (True, 3, head)


def test_an_empty_export_is_not_called_intact(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    result = run("audit", "verify", "acme", "--file", tmp_path / "empty.jsonl")
    assert result.exit_code == 2
    assert "holds no records" in result.stderr


def test_a_changed_audit_record_is_named(registry: FakeRegistry, run: Run, run_json: RunJson) -> None:
    registry.record("one")
    registry.record("two")
    registry.record("three")
    registry.audit[1]["action"] = "nothing"
    result = run("audit", "verify", "acme")
    assert result.exit_code == 1
    assert "Line 2, record 2: EDITED: action as shown" in result.stderr
    assert run_json("audit", "verify", "acme", exit_code=1)["first_bad"]["seq"] == 2


def test_a_cut_off_audit_log_is_found_by_its_noted_head(registry: FakeRegistry, run_json: RunJson) -> None:
    registry.record("one")
    registry.record("two")
    noted = registry.audit[-1]["hash"]
    registry.audit.pop()
    done = run_json("audit", "verify", "acme", "--expect-head", noted, exit_code=1)
    assert (done["intact"], done["error"]["code"]) == (False, "audit_cut_off")


def exported(registry: FakeRegistry, run: Run, tmp_path: Path) -> tuple[Path, Path]:
    """An export of three records, its signed checkpoints, and the key, as an auditor keeps them."""
    for action in ("one", "two", "three"):
        registry.record(action)
    registry.sign_audit()
    assert "1 checkpoints of acme" in run("audit", "checkpoints", "acme", tmp_path / "signed").stdout
    assert run("audit", "export", "acme", "-o", tmp_path / "acme.jsonl").exit_code == 0
    (tmp_path / "public.pem").write_text(registry.signer.public_pem())
    return tmp_path / "acme.jsonl", tmp_path / "public.pem"


def test_an_export_is_checked_against_signed_checkpoints_without_a_server(
    registry: FakeRegistry, environ: dict[str, str], run: Run, run_json: RunJson, tmp_path: Path
) -> None:
    log, key = exported(registry, run, tmp_path)
    del environ["LOREKEEPER_URL"]
    result = run("audit", "verify", log, "--checkpoint", tmp_path / "signed", "--key", key)
    assert "is intact: 3 records" in result.stdout
    assert "1 signed checkpoints agree, the last of them at record 3" in result.stdout
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:2]))
    assert "an end that was cut off can't be seen" in run("audit", "verify", log).stderr
    result = run("audit", "verify", log, "--checkpoint", tmp_path / "signed", "--key", key)
    assert result.exit_code == 1
    assert "Line 3, record 3: CUT OFF" in result.stderr
    log.write_text("")
    bad = run_json("audit", "verify", log, "--checkpoint", tmp_path / "signed", "--key", key, exit_code=1)["first_bad"]
    assert (bad["happened"], bad["seq"]) == ("truncated", 1)


def test_checkpoints_count_only_with_a_key_that_is_trusted(registry: FakeRegistry, run: Run, tmp_path: Path) -> None:
    log, _key = exported(registry, run, tmp_path)
    assert run("audit", "verify", log, "--checkpoint", tmp_path / "signed").exit_code == 2
    (tmp_path / "other").mkdir()
    other = generate_key_file(tmp_path / "other" / "signing.pem")
    (tmp_path / "other.pem").write_text(other.public_pem())
    result = run("audit", "verify", log, "--checkpoint", tmp_path / "signed", "--key", tmp_path / "other.pem")
    assert result.exit_code == 1
    assert "isn't a checkpoint to be trusted" in result.stderr
    result = run("audit", "verify", log, "--checkpoint", tmp_path / "signed", "--key", log)
    assert "holds no keys" in result.stderr


def test_a_checkpoint_of_another_log_or_one_that_contradicts_is_refused(
    registry: FakeRegistry, run: Run, tmp_path: Path
) -> None:
    log, key = exported(registry, run, tmp_path)
    verify = ("audit", "verify", log, "--key", key, "--checkpoint", tmp_path / "signed")
    other = AuditCheckpoint(chain="acme", seq=3, head="e" * 64, first=registry.audit[0]["hash"])
    (tmp_path / "signed" / "other.json").write_text(sign_checkpoint(registry.signer, other))
    assert "contradicts another signed checkpoint" in run(*verify).stderr
    (tmp_path / "signed" / "other.json").write_text(sign_checkpoint(registry.signer, replace(other, chain="globex")))
    assert "not of acme" in run(*verify).stderr


def test_a_log_to_verify_is_a_file_that_is_there_or_a_tenant(run: Run, tmp_path: Path) -> None:
    result = run("audit", "verify", tmp_path / "no-such.jsonl")
    assert result.exit_code == 2
    assert "is not a file" in result.stderr


def test_an_audit_export_is_lines_for_pipes_and_a_document_for_json(
    registry: FakeRegistry, run: Run, run_json: RunJson
) -> None:
    registry.record("one")
    assert json.loads(run("audit", "export", "acme").stdout)["action"] == "one"
    assert run_json("audit", "export", "acme")["results"][0]["action"] == "one"


def test_an_export_never_overwrites_a_file(registry: FakeRegistry, run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("precious")
    result = run("audit", "export", "acme", "-o", tmp_path / "log.jsonl")
    assert result.exit_code == 1
    assert "File exists" in result.stderr
    assert (tmp_path / "log.jsonl").read_text() == "precious"


def test_a_base_model_is_described_here_and_only_the_description_is_sent(
    registry: FakeRegistry, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "base").mkdir()
    result = run("base", "register", "smol", "--revision", "r1", "--folder", tmp_path / "base")
    assert result.exit_code == 1
    assert "config.json" in result.stderr
    assert registry.seen == []
    _write_tiny_model(tmp_path / "base")
    result = run("base", "register", "smol", "--revision", "r1", "--folder", tmp_path / "base")
    assert result.exit_code == 0, result.output
    assert "smol r1 is registered" in result.stdout


def _write_tiny_model(folder: Path) -> None:
    config = {"architectures": ["LlamaForCausalLM"], "vocab_size": 4, "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(config))
    save_file({"model.embed_tokens.weight": np.zeros((4, 2), dtype=np.float32)}, folder / "model.safetensors")


def test_checkpoints_by_a_key_that_was_revoked_count_for_nothing_and_stop_nothing(
    registry: FakeRegistry, run: Run, tmp_path: Path
) -> None:
    log, key = exported(registry, run, tmp_path)
    new = LocalKeySigner(ec.generate_private_key(ec.SECP256R1()))
    now = AuditCheckpoint(
        chain="acme", seq=2, head=registry.audit[1]["hash"], first=registry.audit[0]["hash"], previous=""
    )
    (tmp_path / "signed" / "new.json").write_text(sign_checkpoint(new, now))
    revoked = datetime.now(UTC)
    key.write_text(render_trusted_key(registry.signer.public_pem(), revoked=revoked) + new.public_pem())
    result = run("audit", "verify", log, "--checkpoint", tmp_path / "signed", "--key", key)
    assert "1 signed checkpoints agree, the last of them at record 2" in result.stdout


def test_of_a_record_that_was_signed_again_the_newest_checkpoint_is_kept_under_its_own_name(
    registry: FakeRegistry, run: Run, tmp_path: Path
) -> None:
    registry.record("one")
    registry.sign_audit()
    registry.checkpoints.insert(0, ({**registry.checkpoints[0][0], "key_id": "0" * 64}, "{}"))
    run("audit", "checkpoints", "acme", tmp_path / "signed")
    (kept,) = (tmp_path / "signed").iterdir()
    assert kept.name.endswith(f"-{registry.signer.key_id[:16]}.json")


def test_a_hash_noted_earlier_has_to_be_a_records_own_and_not_only_stand_in_one(
    registry: FakeRegistry, run_json: RunJson
) -> None:
    registry.record("one")
    noted = registry.audit.pop()["hash"]
    registry.record(noted)
    done = run_json("audit", "verify", "acme", "--expect-head", noted, exit_code=1)
    assert (done["intact"], done["error"]["code"]) == (False, "audit_cut_off")
