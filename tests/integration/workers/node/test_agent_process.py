"""The agent as a process, with a real broker, and killed at the worst moments."""

import hashlib
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from celery import Celery

from cachecontrol.metrics import NAMES
from deploy.embedded.ports import free_port
from deploy.embedded.valkey import ValkeyServer
from registry.signing.local_key import LocalKeySigner
from tests.fakes.engine_vllm import FakeEngineServer
from tests.fakes.weights import Weights, log_probability, tokens_of
from tests.integration.workers.node.stage import AgentProcess, LocalWeb, wait_until
from tests.unit.workers.node.kit import BASE, Release, make_release

PROBE = "Grüße, 今日は 𝄞 \u2028 \x7f and a lighthouse"


def _reading(release: Release) -> dict[str, Any]:
    """How the engine reads a text, in floats with all their digits and in characters that JSON may escape."""
    digest = hashlib.sha256(release.contents["adapter_model.safetensors"]).hexdigest()
    weights = Weights(digest, rank=4, zero=False, nan=False)
    tokens = list(enumerate(tokens_of(PROBE)))[1:]
    base, adapter = ([log_probability(who, token, at) for at, token in tokens] for who in (None, weights))
    return {"prompt": PROBE, "base": base, "adapter": adapter}


class Stage:
    """A node with its own name and queue: engine, web, broker and disk stay while agents come and go."""

    def __init__(self, folder: Path, fake: FakeEngineServer, web: LocalWeb, broker: str, key: LocalKeySigner) -> None:
        self.node = f"edge-{uuid.uuid4().hex[:8]}"
        self.cache = folder / "cache"
        self.fake, self.web, self.key = fake, web, key
        self._log = folder / "agent.log"
        keys = folder / "keys.pem"
        keys.write_text(key.public_pem())
        self.env = {
            "LOREKEEPER_NODE_NAME": self.node,
            "LOREKEEPER_WEB_URL": web.url,
            "LOREKEEPER_NODE_TOKEN": "lk_token",
            "LOREKEEPER_BROKER_URL": broker,
            "LOREKEEPER_NODE_CACHE": str(self.cache),
            "LOREKEEPER_NODE_ENGINE_URL": fake.url,
            "LOREKEEPER_NODE_BASE_MODEL": BASE,
            "LOREKEEPER_TRUSTED_KEYS": str(keys),
            "LOREKEEPER_NODE_HEARTBEAT": "0.1",
            "LOREKEEPER_EVICT_GRACE": "0.2",
        }
        self._sender = Celery("sender", broker=broker, set_as_current=False)
        self._exit = ExitStack()

    def use_broker(self, url: str) -> None:
        self.env["LOREKEEPER_BROKER_URL"] = url
        self._sender.close()
        self._sender = Celery("sender", broker=url, set_as_current=False)

    def agent(self) -> AgentProcess:
        agent = AgentProcess(self.env, self._log)
        self._exit.callback(self._end, agent)
        return agent

    def release(self, *, version: str = "2026-07-04.1", seed: int = 0) -> Release:
        release = make_release(self.key, version=version, seed=seed, store=f"{self.web.url}/store/")
        self.web.objects |= {file.sha256: release.contents[file.path] for file in release.files}
        return release

    def warm(self, release: Release, *, generation: int = 1) -> None:
        command = release.warm(generation=generation, granted={"node": self.node}, probe_reference=_reading(release))
        self._send("node.warm", command)

    def evict(self, release: Release, *, generation: int = 2) -> None:
        self._send("node.evict", release.evict(generation=generation, granted={"node": self.node}, drain_s=0.1 + 0.2))

    def expect(self, condition: Callable[[], object]) -> None:
        wait_until(condition, what=self._log.read_text)

    def close(self) -> None:
        self._exit.close()
        self._sender.close()

    def _send(self, task: str, command: object) -> None:
        self._sender.send_task(task, kwargs={"command": command}, queue=f"node.{self.node}")

    @staticmethod
    def _end(agent: AgentProcess) -> None:
        if agent.process.poll() is None:
            agent.kill()


@pytest.fixture
def stage(tmp_path: Path, fake: FakeEngineServer, valkey: ValkeyServer, key: LocalKeySigner) -> Iterator[Stage]:
    with LocalWeb() as web:
        made = Stage(tmp_path, fake, web, valkey.url, key)
        yield made
        made.close()


def test_a_message_loads_a_version_and_another_takes_it_away(stage: Stage) -> None:
    release, agent = stage.release(), stage.agent()
    stage.warm(release)
    stage.expect(lambda: "loaded" in stage.web.kinds())
    assert stage.web.kinds().count("loaded") == 1
    stage.expect(lambda: stage.web.reports[-1]["loaded"])
    assert stage.web.reports[-1]["loaded"] == [
        {"name": release.name, "root": str(stage.cache / "versions" / release.name)}
    ]
    stage.evict(release)
    stage.expect(lambda: stage.web.kinds()[-1] == "evicted")
    stage.expect(lambda: stage.web.reports[-1]["on_disk"] == [])
    assert list((stage.cache / "blobs").iterdir()) == []
    assert agent.terminate() == 0


def test_an_agent_answers_for_its_metrics(stage: Stage) -> None:
    port = free_port()
    stage.env["LOREKEEPER_NODE_METRICS"] = str(port)
    stage.agent()
    stage.warm(stage.release())
    stage.expect(lambda: stage.web.reports and stage.web.reports[-1].get("loaded"))
    page = httpx.get(f"http://127.0.0.1:{port}/metrics").raise_for_status().text
    assert [name for name in NAMES if f"# HELP {name} " not in page] == []
    assert 'adapter_cache_hit_rate{tier="remote"} 1.0' in page
    assert 'per_tenant_adapter_quota_usage{base_model="base",resource="cpu_bytes",tenant="acme"}' in page
    assert "lorekeeper_node_engine_healthy 1.0" in page


def test_an_agent_whose_metrics_address_is_taken_ends_with_the_settings_name(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        stage.env["LOREKEEPER_NODE_METRICS"] = str(taken.getsockname()[1])
        agent = stage.agent()
        assert agent.process.wait(20) == 2
    assert "LOREKEEPER_NODE_METRICS can't be listened on" in agent.text()


def test_an_agent_killed_while_it_loads_finishes_after_its_restart(stage: Stage) -> None:
    release, agent = stage.release(), stage.agent()
    stage.fake.faults.load_delay_s = 1.0
    stage.warm(release)
    stage.expect(lambda: ("load", release.name) in stage.fake.state.requests)
    agent.kill()
    stage.agent()
    stage.expect(lambda: "loaded" in stage.web.kinds())
    assert list(stage.fake.state.names) == [release.name]


def test_an_agent_killed_while_it_downloads_leaves_no_half_files(stage: Stage) -> None:
    release, agent = stage.release(), stage.agent()
    stage.web.slow_s = 0.5
    stage.warm(release)
    stage.expect(lambda: stage.web.downloads)
    agent.kill()
    stage.agent()
    stage.expect(lambda: "loaded" in stage.web.kinds())
    assert list((stage.cache / "partial").iterdir()) == []


def test_outcomes_wait_for_web_on_disk_through_a_kill(stage: Stage) -> None:
    release, agent = stage.release(), stage.agent()
    stage.web.down = True
    stage.warm(release)
    stage.expect(lambda: release.name in stage.fake.state.names)
    stage.expect(lambda: len(list((stage.cache / "outbox").glob("[!.]*"))) == 1)
    agent.kill()
    stage.web.down = False
    stage.agent()
    stage.expect(lambda: "loaded" in stage.web.kinds())
    assert stage.web.kinds() == ["loaded"]


def test_tombstones_go_on_after_a_kill(stage: Stage) -> None:
    release, agent = stage.release(), stage.agent()
    stage.warm(release)
    stage.evict(release)
    stage.expect(lambda: "evicted" in stage.web.kinds())
    agent.kill()
    stage.agent()
    stage.expect(lambda: stage.web.reports[-1]["on_disk"] == [])


def test_a_restarted_engine_is_told_by_its_new_life_and_empty_list(stage: Stage) -> None:
    stage.agent()
    stage.warm(stage.release())
    stage.expect(lambda: stage.web.reports and stage.web.reports[-1]["loaded"])
    before = stage.web.reports[-1]["boot_id"]
    stage.fake.state.restart()
    stage.expect(lambda: stage.web.reports[-1]["boot_id"] != before)
    assert stage.web.reports[-1]["loaded"] == []


def test_a_second_agent_on_the_same_cache_gives_up(stage: Stage) -> None:
    stage.agent()
    stage.expect(lambda: stage.web.reports)
    second = stage.agent()
    assert second.process.wait(20) == 2
    assert "LOREKEEPER_NODE_CACHE is in use by another agent" in second.text()


def test_a_wrong_setting_ends_the_agent_with_its_name(stage: Stage) -> None:
    del stage.env["LOREKEEPER_NODE_TOKEN"]
    agent = stage.agent()
    assert agent.process.wait(20) == 2
    assert "LOREKEEPER_NODE_TOKEN is missing" in agent.text()


def test_an_agent_starts_before_its_broker(stage: Stage) -> None:
    stage.env["LOREKEEPER_BROKER_URL"] = "redis://127.0.0.1:9/0"
    agent = stage.agent()
    stage.expect(lambda: len(stage.web.reports) > 3)
    assert agent.process.poll() is None


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ValkeyServer]:
    """One of the test's own, to be killed."""
    server = ValkeyServer(tmp_path / "valkey", port=free_port(), password="secret")
    server.start()
    try:
        yield server
    finally:
        server.stop()


def test_an_agent_goes_on_when_its_broker_was_killed_and_comes_back(stage: Stage, broker: ValkeyServer) -> None:
    stage.use_broker(broker.url)
    agent = stage.agent()
    stage.expect(lambda: "ready." in agent.text())
    broker.kill()
    broker.restart()
    stage.warm(stage.release())
    stage.expect(lambda: "loaded" in stage.web.kinds())


def test_an_agent_goes_on_when_its_broker_was_away_as_a_command_ended(stage: Stage, broker: ValkeyServer) -> None:
    stage.use_broker(broker.url)
    agent = stage.agent()
    stage.expect(lambda: "ready." in agent.text())
    first, second = stage.release(), stage.release(version="2026-07-04.2", seed=1)
    stage.fake.faults.load_delay_s = 0.5
    stage.warm(first)
    stage.expect(lambda: ("load", first.name) in stage.fake.state.requests)
    broker.kill()
    stage.expect(lambda: "loaded" in stage.web.kinds())
    broker.restart()
    stage.warm(second)
    stage.expect(lambda: second.name in stage.fake.state.names)
