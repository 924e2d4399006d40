import logging
from pathlib import Path
from typing import Any

import pytest

from tests.unit.workers.node.kit import Rig
from workers.node.agent import lock_cache
from workers.node.app import create_app
from workers.node.errors import SettingError
from workers.node.settings import Settings
from workers.node.tasks import register_tasks


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        node="edge-1",
        web_url="http://web.test",
        token="t",
        broker_url="redis://127.0.0.1:6379/0",
        cache=tmp_path / "cache",
        engine_kind="vllm",
        engine_url="http://127.0.0.1:8100",
        engine_restart=(),
        engine_start_s=600,
        engine_token="",
        base_model="base",
        trusted_keys=tmp_path / "keys.pem",
        heartbeat_s=2,
        evict_grace_s=300,
        probe_tolerance=0.12,
        disk_bytes=None,
    )


def call(rig: Rig, settings: Settings, task: str, command: object) -> list[dict[str, Any]]:
    app, agent = create_app(settings), rig.agent()
    register_tasks(app, agent)
    app.tasks[task](command=command)
    agent.courier.deliver()
    return rig.web.outcomes


def test_a_lost_worker_loses_no_command(settings: Settings) -> None:
    conf = create_app(settings).conf
    assert conf.task_acks_late
    assert conf.task_reject_on_worker_lost
    assert conf.worker_prefetch_multiplier == 0


def test_only_json_is_accepted_and_nobody_steers_the_worker(settings: Settings) -> None:
    conf = create_app(settings).conf
    assert conf.accept_content == ["json"]
    assert conf.worker_enable_remote_control is False


def test_its_unacknowledged_commands_are_its_own(settings: Settings) -> None:
    options = create_app(settings).conf.broker_transport_options
    assert options["unacked_key"] == "node.edge-1.unacked"
    assert options["visibility_timeout"] == 120


def test_a_warm_message_loads_the_version(rig: Rig, settings: Settings) -> None:
    outcomes = call(rig, settings, "node.warm", rig.release().warm())
    assert outcomes[-1]["outcome"] == "loaded"


def test_a_fetch_message_brings_it_to_the_disk(rig: Rig, settings: Settings) -> None:
    assert call(rig, settings, "node.fetch", rig.release().fetch())[-1]["outcome"] == "on_disk"
    assert rig.engine.roots == {}


def test_an_evict_message_unloads_it(rig: Rig, settings: Settings) -> None:
    assert call(rig, settings, "node.evict", rig.release().evict())[-1]["outcome"] == "evicted"


@pytest.mark.parametrize("task", ["node.warm", "node.fetch", "node.evict"])
def test_a_malformed_command_is_reported_as_refused(rig: Rig, settings: Settings, task: str) -> None:
    (outcome,) = call(rig, settings, task, {"engine_name": "lk-a", "generation": 3})
    assert (outcome["outcome"], outcome["error_class"], outcome["generation"]) == ("failed", "refused", 3)
    assert "lacks" in outcome["message"]


def test_a_command_of_nobody_is_only_logged(rig: Rig, settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    assert call(rig, settings, "node.warm", "rm -rf /") == []
    assert "refused a command" in caplog.text


def test_two_agents_never_share_a_cache(tmp_path: Path) -> None:
    with (
        lock_cache(tmp_path),
        pytest.raises(SettingError, match="LOREKEEPER_NODE_CACHE is in use"),
    ):
        lock_cache(tmp_path)
    lock_cache(tmp_path).close()


def test_a_cache_folder_that_cannot_be_made_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingError, match="LOREKEEPER_NODE_CACHE can't be used"):
        lock_cache(tmp_path / "file" / "cache")
