"""The main job on a real vLLM: two trained versions, approved by others, served, moved, rolled back, and healed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai
import pytest

from client.refs import PairRef, VersionRef
from deploy.demo.materials import DEFAULT_CACHE, ensure_adapters, ensure_base_model
from deploy.demo.recipes import BASE_NAME, BASE_REVISION
from deploy.demo.voices import BRISK, QUESTIONS, WARM, voice_of
from deploy.embedded.facts import EngineOptions
from deploy.embedded.ports import free_port
from deploy.embedded.stack import Stack
from deploy.engine.vllm import VllmServer, VllmSpec
from tests.e2e.journey import ADAPTER, ALIAS, TENANT, Journey, wait_until
from tests.factories.base_folders import write_adapter

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / DEFAULT_CACHE
SECOND = PairRef(TENANT, "second")
SETTINGS = {"LOREKEEPER_DRAIN_SECONDS": "1", "LOREKEEPER_EVICT_GRACE": "2", "LOREKEEPER_COLD_WAIT": "120"}


@pytest.fixture(scope="module")
def vllm_python() -> Path:
    """The interpreter that has vLLM; ``make engine`` makes it."""
    python = Path(os.environ.get("LOREKEEPER_VLLM_PYTHON", ROOT / ".venv-vllm" / "bin" / "python"))
    assert python.exists(), f"{python} does not exist: run make engine"
    return python.absolute()


@pytest.fixture(scope="module")
def base_folder() -> Path:
    return ensure_base_model(CACHE)[0]


@pytest.fixture(scope="module")
def adapters() -> dict[str, Path]:
    """Two real training runs; made once and kept, as the demo's are."""
    return ensure_adapters(CACHE, (WARM, BRISK))[0]


@pytest.fixture(scope="module")
def real_journey(stack_folder: Path, vllm_python: Path, base_folder: Path) -> Iterator[Journey]:
    engine = EngineOptions(
        python=vllm_python, model=base_folder.resolve(), base_model=BASE_NAME, base_revision=BASE_REVISION
    )
    stack = Stack(stack_folder / "real", engine=engine, settings=SETTINGS, calm_seconds=0)
    stack.start()
    try:
        stack.wait_ready(seconds=300)
        journey = Journey(stack, base_model=BASE_NAME, base_revision=BASE_REVISION).set_up()
        yield journey
        journey.close()
    finally:
        stack.stop()


def voice(journey: Journey) -> str:
    """Whose voice the alias answers in, to a question that no version was trained on."""
    answer = journey.ask(QUESTIONS[0])
    assert answer.status_code == 200, answer.text
    return voice_of(answer.json()["choices"][0]["message"]["content"])


def test_one_adapter_from_training_to_tokens_and_back_by_rollback(
    real_journey: Journey, adapters: dict[str, Path], tmp_path: Path
) -> None:
    journey = real_journey
    assert journey.push(adapters["warm"], "v1").state == "candidate"
    assert journey.push(adapters["brisk"], "v2").state == "candidate"
    assert was_run(journey, "v1")
    refuse_bad_uploads(journey, adapters["warm"], tmp_path)
    assert journey.approve("v1").state == "approved"
    assert journey.approve("v2").state == "approved"

    journey.point_alias("v1")
    assert voice(journey) == "warm"
    assert stream_in_one_voice(journey) == "warm"
    journey.warm("v2")
    journey.point_alias("v2")
    assert voice(journey) == "brisk"
    # What a rollback leaves is cooled, unless it serves elsewhere.
    journey.clients["rui"].aliases.set(SECOND, VersionRef(TENANT, ADAPTER, "v2"))
    began = time.monotonic()
    journey.roll_back()
    assert voice(journey) == "warm"
    print(f"rollback to the end of the first old answer: {time.monotonic() - began:.2f} s")

    the_public_tool_verifies_what_was_pulled(journey, tmp_path)
    heal_after_the_engine_was_killed(journey)
    two_versions_asked_at_once_keep_their_voices(journey)
    evict_leaves_no_file(journey)
    verdict = journey.audit()
    assert verdict.intact
    assert verdict.records > 20


def was_run(journey: Journey, name: str) -> bool:
    """The worker ran the version on its base, so that the node compares its engine with that from now on."""
    report = journey.clients["ben"].versions.report(VersionRef(TENANT, ADAPTER, name))
    effect = next(check for check in report.checks if check.name == "effect")
    return effect.verdict == "pass" and "reference_digest" in effect.evidence


def refuse_bad_uploads(journey: Journey, good: Path, tmp_path: Path) -> None:
    """A NaN among the weights never becomes a candidate, and its bytes leave the store."""
    from safetensors.numpy import load, save

    files = {path.name: path.read_bytes() for path in good.iterdir() if path.is_file()}
    tensors = load(files["adapter_model.safetensors"])
    next(iter(tensors.values()))[0, 0] = float("nan")
    bad = write_adapter(tmp_path / "nan", {**files, "adapter_model.safetensors": save(tensors)})
    version = journey.push(bad, "nan")
    assert version.state == "rejected"
    assert "NaN" in version.state_message
    weights = next(file for file in version.files if file.path == "adapter_model.safetensors")
    s3 = journey.stack.server("s3")
    key = f"artifacts/{TENANT}/{weights.sha256[:2]}/{weights.sha256}"
    wait_until(lambda: not stored(s3, key), "the refused weights leave the store")


def stored(s3: object, key: str) -> bool:
    bucket = s3.bucket  # type: ignore[attr-defined]
    found = s3.client().list_objects_v2(Bucket=bucket, Prefix=key)  # type: ignore[attr-defined]
    return int(found["KeyCount"]) > 0


def stream_in_one_voice(journey: Journey) -> str:
    """The real ``openai`` package streams through the gateway."""
    client = openai.OpenAI(base_url=f"{journey.stack.urls['gateway']}/v1", api_key=journey.application_token)
    with client:
        assert [model.id for model in client.models.list()] == [ALIAS, f"{ADAPTER}.default"]
        stream = client.chat.completions.create(
            model=f"{TENANT}/{ALIAS}",
            messages=[{"role": "user", "content": QUESTIONS[1]}],
            max_tokens=24,
            temperature=0,
            stream=True,
        )
        return voice_of("".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices))


def the_public_tool_verifies_what_was_pulled(journey: Journey, tmp_path: Path) -> None:
    """``model_signing`` accepts the pulled folder, and refuses it after any byte or name changes."""
    folder = tmp_path / "pulled"
    journey.clients["ben"].pull(VersionRef(TENANT, ADAPTER, "v1"), folder)
    assert public_tool_accepts(journey, folder)
    config = folder / "adapter_config.json"
    original = config.read_bytes()
    config.write_bytes(original.replace(b"16", b"17", 1))
    assert not public_tool_accepts(journey, folder)
    config.write_bytes(original)
    config.rename(folder / "adapter_konfig.json")
    assert not public_tool_accepts(journey, folder)


def public_tool_accepts(journey: Journey, folder: Path) -> bool:
    key = journey.stack.facts.secrets.trusted_keys
    command = [sys.executable, "-m", "model_signing", "verify", "key", str(folder)]
    options = ["--signature", str(folder / "model.sig"), "--public_key", str(key), "--no-ignore-git-paths"]
    return subprocess.run([*command, *options], capture_output=True, check=False).returncode == 0


def heal_after_the_engine_was_killed(journey: Journey) -> None:
    """vLLM forgets every adapter when it dies; the fleet is as desired again without anybody's help.

    Questions go on being asked meanwhile, beside the probes of what is loaded again.
    """
    before = generations(journey)
    assert set(before) == {"v1", "v2"}
    began = time.monotonic()
    journey.stack.kill("engine", signal.SIGKILL, group=True)
    journey.stack.wait_ready("engine", seconds=240)
    up = time.monotonic()
    assert voice(journey) == "warm"
    wait_until(lambda: are_all_newer(generations(journey), before), "both versions are loaded again")
    assert journey.answering_version() == f"{TENANT}/{ADAPTER}@v1"
    assert voice(journey) == "warm"
    print(f"engine back after {up - began:.1f} s, adapter answering {time.monotonic() - up:.1f} s later")


def two_versions_asked_at_once_keep_their_voices(journey: Journey) -> None:
    aliases = [ALIAS, SECOND.name] * 4

    def ask(alias: str) -> str:
        answer = journey.ask(QUESTIONS[0], model=alias)
        assert answer.status_code == 200, answer.text
        return voice_of(answer.json()["choices"][0]["message"]["content"])

    with ThreadPoolExecutor(len(aliases)) as pool:
        assert list(pool.map(ask, aliases)) == ["warm", "brisk"] * 4


def generations(journey: Journey) -> dict[str, int]:
    """The loaded versions of the node, each with the number of the command that loaded it."""
    node = journey.clients["olga"].nodes.get(journey.node)
    return {each.version: each.generation for each in node.residencies if each.observed == "loaded"}


def are_all_newer(now: dict[str, int], before: dict[str, int]) -> bool:
    return all(now.get(version, 0) > generation for version, generation in before.items())


def evict_leaves_no_file(journey: Journey) -> None:
    """Evicting by hand goes before an alias: the gateway would ask for the version again when somebody asks for it."""
    journey.clients["olga"].nodes.evict(journey.node, VersionRef(TENANT, ADAPTER, "v2"))
    wait_until(lambda: journey.observed("v2") == "absent", "v2 is evicted")
    name = journey.show("v2").engine_name
    cache = Path(journey.stack.env_for("agent")["LOREKEEPER_NODE_CACHE"])
    wait_until(lambda: not list(cache.rglob(str(name))), "the files of v2 are deleted after the grace")
    assert voice(journey) == "warm"


def test_the_engine_keeps_to_the_contract_that_the_agent_relies_on(
    stack_folder: Path, vllm_python: Path, base_folder: Path, adapters: dict[str, Path]
) -> None:
    """The contract test that the fake passes in the fast suite, against a vLLM of its own."""
    spec = VllmSpec(
        python=vllm_python, model=base_folder.resolve(), port=free_port(), served_name=BASE_NAME, max_rank=16
    )
    with VllmServer(stack_folder / "vllm", spec) as server:
        environment = {
            **os.environ,
            "LOREKEEPER_VLLM_URL": server.url,
            "LOREKEEPER_TEST_ADAPTER": str(adapters["warm"]),
        }
        module = "tests/integration/workers/node/engines/test_engine_contract.py"
        command = [sys.executable, "-m", "pytest", module, "-q", "-k", "real", "-p", "no:cacheprovider"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "13 passed" in done.stdout, done.stdout[-500:]
