"""Unmodified clients of the Hugging Face Hub, old and new, against the whole stack: push, pull, and revocation."""

import base64
import hashlib
import json
import os
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from client.models import Version
from client.refs import VersionRef
from client.sdk import LorekeeperClient
from deploy.demo.materials import ensure_adapters, ensure_base_model
from deploy.demo.recipes import BASE_NAME as DEMO_BASE
from deploy.demo.recipes import BASE_REVISION
from deploy.demo.voices import BRISK, QUESTIONS, voice_of
from deploy.embedded.ports import free_port
from deploy.embedded.stack import Stack
from deploy.engine.vllm import VllmServer, VllmSpec
from registry.base_models.description import describe_folder
from tests.e2e.hub_environments import CACHE, ROOT, client_python, run_client
from tests.e2e.journey import TENANT, Journey
from tests.factories.adapters import adapter_files, adapter_tensors
from tests.factories.base_folders import write_adapter

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
CLIENTS = ("2.4.0", "1.5.0", "0.36.2")
# With which version of the client.
PEFTS = {"today": "2.", "then": "0.36."}

Token = Callable[[str], str]


@pytest.fixture(scope="module")
def admin(fake_stack: Stack, journey: Journey) -> Iterator[LorekeeperClient]:
    tokens = json.loads(fake_stack.facts.secrets.bootstrap.read_text())
    with LorekeeperClient(fake_stack.urls["web"], tokens["admin_token"]) as client:
        yield client


@pytest.fixture(scope="module")
def token(admin: LorekeeperClient) -> Token:
    """A token for HF_TOKEN: ``token("ana")`` pushes, ``token("olga")`` is an engine's that only reads."""

    def make(name: str) -> str:
        scopes = ["read", "upload"] if name == "ana" else ["read"]
        email = f"{name}@acme.example"
        made = admin.tenants.create_token(TENANT, name="hub", kind="person", scopes=scopes, person_email=email)
        return str(made.token)

    return make


@pytest.mark.parametrize("version", CLIENTS)
def test_a_pipeline_pushes_and_an_engine_pulls_with_their_own_client(
    fake_stack: Stack, journey: Journey, token: Token, version: str, tmp_path: Path
) -> None:
    python = client_python(version, f"huggingface_hub=={version}")
    number = CLIENTS.index(version)
    repo = f"{TENANT}/hub-{number}"
    files = adapter_files(seed=700 + number)
    folder = write_adapter(tmp_path / "adapter", files)
    homes = {name: tmp_path / name for name in ("ana", "olga")}
    tokens = {name: token(name) for name in homes}
    for home in homes.values():
        home.mkdir()

    def run(who: str, *arguments: str) -> dict[str, Any]:
        where = fake_stack.urls["web"]
        return run_client(python, "hub_client.py", *arguments, endpoint=where, token=tokens[who], home=homes[who])

    pushed = run("ana", "push", repo, str(folder), "v1")
    check_push(pushed, repo, version)
    ref = VersionRef(TENANT, f"hub-{number}", "v1")
    assert journey.clients["ana"].versions.wait(ref).state == "candidate"

    cache = str(homes["olga"] / "cache")
    for revision in ("v1", "main", str(pushed["oid"])):
        assert run("olga", "read", repo, revision, cache)["error"] == "RevisionNotFoundError"
    release(journey, ref)
    for name, revision in ((repo, "v1"), (repo, "main"), (f"{repo}.v1", "main")):
        check_read(run("olga", "read", name, revision, cache), files)

    journey.clients["rui"].versions.revoke(ref, reason="poisoned")
    for name, revision in ((repo, "v1"), (repo, "main"), (f"{repo}.v1", "main")):
        assert run("olga", "read", name, revision, cache)["error"] == "RevisionNotFoundError"


@pytest.mark.parametrize("environment", list(PEFTS))
def test_a_training_script_pushes_with_peft_and_another_loads_it(
    fake_stack: Stack, journey: Journey, token: Token, environment: str, tmp_path: Path
) -> None:
    python = peft_python(environment)
    repo = f"{TENANT}/peft-{environment}"
    base = str(fake_stack.facts.data.parent / "base")
    where: dict[str, Any] = {"endpoint": fake_stack.urls["web"], "home": tmp_path}
    pushed = run_client(python, "hub_peft.py", "push", repo, base, "v1", token=token("ana"), **where)
    ref = VersionRef(TENANT, f"peft-{environment}", "v1")
    version = journey.clients["ana"].versions.wait(ref)
    assert (version.state, version.rank) == ("candidate", 4), version.state_message
    assert pushed["versions"]["huggingface_hub"].startswith(PEFTS[environment])
    assert sorted(pushed["files"]) == ["README.md", "adapter_config.json", "adapter_model.safetensors"]
    assert pushed["logits"] != pushed["base"]
    release(journey, ref)
    for revision in ("v1", "main"):
        pulled = run_client(python, "hub_peft.py", "pull", repo, base, revision, token=token("olga"), **where)
        assert pulled["logits"] == pushed["logits"]


def test_a_large_push_is_never_held_in_memory(
    fake_stack: Stack, journey: Journey, token: Token, tmp_path: Path
) -> None:
    """In one line of one request, as clients send it."""
    size = 256 * 1024 * 1024
    repo, ana = f"{TENANT}/large", token("ana")
    text = base64.b64encode(os.urandom(size // 64 + 2)[: size // 64]).rstrip(b"=")
    line = b'{"key": "file", "value": {"content": "%b", "path": "adapter_model.safetensors", "encoding": "base64"}}\n'
    body = b'{"key": "header", "value": {"summary": "Large"}}\n' + line % (text[: len(text) // 4 * 4] * 64)
    with httpx.Client(base_url=fake_stack.urls["web"], headers={"Authorization": f"Bearer {ana}"}, timeout=120) as web:
        whose = {"name": "large", "organization": TENANT}
        web.post("/api/repos/create", json=whose).raise_for_status()
        before, began = peak_memory(fake_stack), time.monotonic()
        commit = web.post(f"/api/models/{repo}/commit/main", content=body).raise_for_status().json()["commitOid"]
        seconds, grown = time.monotonic() - began, peak_memory(fake_stack) - before
        head = web.head(f"/{repo}/resolve/{commit}/adapter_model.safetensors")
        assert int(head.headers["X-Linked-Size"]) > 0.95 * size
        web.request("DELETE", "/api/repos/delete", json=whose).raise_for_status()
    rate = size / seconds / 1e6
    print(f"\npush of {size >> 20} MiB over the Hub's API: {rate:.0f} MB/s, {grown >> 20} MiB more memory of web")
    assert grown < 64 * 1024 * 1024


def peak_memory(stack: Stack) -> int:
    """What the processes of web had at most until now, together, in bytes."""
    web = psutil.Process(stack.pid_of("web"))
    texts = [Path(f"/proc/{each.pid}/status").read_text() for each in (web, *web.children(recursive=True))]
    return sum(int(line.split()[1]) * 1024 for text in texts for line in text.splitlines() if line.startswith("VmHWM"))


def test_a_real_vllm_loads_an_adapter_by_its_repository_id(
    fake_stack: Stack, journey: Journey, admin: LorekeeperClient, token: Token, tmp_path: Path
) -> None:
    python = Path(os.environ.get("LOREKEEPER_VLLM_PYTHON", ROOT / ".venv-vllm" / "bin" / "python")).absolute()
    assert python.exists(), f"{python} does not exist: run make engine"
    base, trained = ensure_base_model(CACHE)[0].resolve(), ensure_adapters(CACHE, (BRISK,))[0][BRISK.name]
    description = describe_folder(base).to_json()
    admin.base_models.register(DEMO_BASE, revision=BASE_REVISION, description=description, max_rank=16)
    where: dict[str, Any] = {"endpoint": fake_stack.urls["web"], "home": tmp_path}
    repo, ref = f"{TENANT}/voice", VersionRef(TENANT, "voice", "v1")
    run_client(python, "hub_client.py", "push", repo, str(trained), "v1", token=token("ana"), **where)
    assert journey.clients["ana"].versions.wait(ref).state == "candidate"
    release(journey, ref)

    spec = HubVllmSpec(python=python, model=base, port=free_port(), served_name=DEMO_BASE)
    spec.hub.update(HF_ENDPOINT=fake_stack.urls["web"], HF_TOKEN=token("olga"), HF_HOME=str(tmp_path / "engine"))
    server = VllmServer(tmp_path / "vllm", spec)
    server.start()
    try:
        plain = answer_of(server, DEMO_BASE)
        for name, path in (("by-alias", repo), ("by-version", f"{repo}.v1")):
            loaded = load(server, name, path)
            assert loaded.status_code == 200, loaded.text
            assert voice_of(answer_of(server, name)) == BRISK.name
        assert answer_of(server, DEMO_BASE) == plain
        assert voice_of(plain) != BRISK.name
        journey.clients["rui"].versions.revoke(ref, reason="poisoned")
        for path in (repo, f"{repo}.v1"):
            assert load(server, "again", path).status_code >= 400
    finally:
        server.stop()


@dataclass(frozen=True, slots=True)
class HubVllmSpec(VllmSpec):
    """An engine that fetches adapters itself, as one that Lorekeeper runs never does."""

    hub: dict[str, str] = field(default_factory=dict)

    def environment(self, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
        ours = VllmSpec.environment(self, inherited)
        del ours["HF_HUB_OFFLINE"]
        return {**ours, **self.hub}


def load(server: VllmServer, name: str, path: str) -> httpx.Response:
    body = {"lora_name": name, "lora_path": path}
    return httpx.post(f"{server.url}/v1/load_lora_adapter", json=body, timeout=120)


def answer_of(server: VllmServer, model: str) -> str:
    body = {"model": model, "messages": [{"role": "user", "content": QUESTIONS[0]}], "max_tokens": 24, "temperature": 0}
    answer = httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=120)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["message"]["content"])


def peft_python(environment: str) -> Path:
    """Peft of today as we have it, or as it was with the oldest client; torch is ours in both, being so large."""
    ours = Path(sysconfig.get_path("purelib"))
    if environment == "today":
        return client_python("peft-today", above=ours)
    old = ("huggingface_hub==0.36.2", "peft==0.17.1", "transformers==4.57.6", "tokenizers==0.22.2")
    return client_python("peft-then", *old, above=ours)


def check_push(pushed: dict[str, Any], repo: str, version: str) -> None:
    assert pushed["version"] == version
    assert pushed["whoami"] == TENANT
    assert pushed["repo_id"] == pushed["again"] == pushed["commit_repo"] == repo
    assert pushed["tags"] == ["v1"]
    assert pushed["branches"] == ["main", "try"]
    assert pushed["files"] == ["adapter_config.json", "adapter_model.safetensors", "notes/run.md"]
    assert pushed["on_try"] == [*pushed["files"][:2], "extra.json", "notes/run.md"]
    assert pushed["history"] == ["Notes", "Upload weights", "Upload README.md with huggingface_hub"]
    assert "already exists" in str(pushed["duplicate"])
    assert "holds no code" in str(pushed["unsafe"])
    assert "never deleted" in str(pushed["unmake"])


def check_read(read: dict[str, Any], files: dict[str, bytes]) -> None:
    assert "error" not in read, read
    digests = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    notes = hashlib.sha256(b"a run").hexdigest()
    assert read["digests"] == {**digests, "notes/run.md": notes}
    assert read["sizes"] == {**{path: len(content) for path, content in files.items()}, "notes/run.md": 5}
    assert read["sha"] == read["commit_folder"]
    assert read["one"] == "adapter_config.json"
    assert read["missing"] in {"EntryNotFoundError", "RemoteEntryNotFoundError"}
    assert sorted(read["paths"]) == ["adapter_config.json", "notes"]
    assert read["exists"] == [True, False]
    assert read["tensors"] == len(adapter_tensors())


def release(journey: Journey, ref: VersionRef) -> Version:
    """Approve it: the first approved version of an adapter is what main means."""
    ben = journey.clients["ben"]
    return ben.versions.approve(ref, digest=str(ben.versions.get(ref).root_digest))
