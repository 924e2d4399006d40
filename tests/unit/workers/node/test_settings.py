from pathlib import Path

import pytest

from workers.node.errors import SettingError
from workers.node.settings import Settings


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    keys = tmp_path / "keys.pem"
    keys.write_text("")
    return {
        "LOREKEEPER_NODE_NAME": "edge-1",
        "LOREKEEPER_WEB_URL": "http://127.0.0.1:8000/",
        "LOREKEEPER_NODE_TOKEN": "lk_secret",
        "LOREKEEPER_BROKER_URL": "redis://:hidden@127.0.0.1:6379/0",
        "LOREKEEPER_NODE_CACHE": str(tmp_path / "cache"),
        "LOREKEEPER_NODE_ENGINE_URL": "http://127.0.0.1:8100",
        "LOREKEEPER_NODE_BASE_MODEL": "smollm2",
        "LOREKEEPER_TRUSTED_KEYS": str(keys),
    }


def test_the_rest_has_defaults(env: dict[str, str]) -> None:
    settings = Settings.from_env(env)
    assert (settings.engine_kind, settings.heartbeat_s, settings.evict_grace_s, settings.disk_bytes) == (
        "vllm",
        2.0,
        300.0,
        None,
    )
    assert settings.probe_tolerance == 0.12
    assert settings.queue == "node.edge-1"
    assert settings.web_url == "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    "variable",
    ["NODE_NAME", "WEB_URL", "NODE_TOKEN", "BROKER_URL", "NODE_CACHE", "NODE_ENGINE_URL", "TRUSTED_KEYS"],
)
def test_a_missing_variable_is_named(env: dict[str, str], variable: str) -> None:
    del env[f"LOREKEEPER_{variable}"]
    with pytest.raises(SettingError, match=f"LOREKEEPER_{variable} is missing"):
        Settings.from_env(env)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("NODE_NAME", "Edge 1"),
        ("WEB_URL", "ftp://web"),
        ("NODE_ENGINE", "llamafile"),
        ("NODE_COMMANDS", "0"),
        ("NODE_LOAD_QUEUE", "many"),
        ("NODE_HEALTH_SECONDS", "-1"),
        ("NODE_SCRUB_SECONDS", "soon"),
        ("NODE_STANDSTILL_SECONDS", "never"),
        ("NODE_LOAD_SECONDS", "long"),
        ("NODE_ENGINE_URL", "unix:/run/vllm"),
        ("NODE_ENGINE_RESTART", "systemctl restart vllm"),
        ("NODE_ENGINE_START", "soon"),
        ("NODE_HEARTBEAT", "soon"),
        ("NODE_HEARTBEAT", "nan"),
        ("EVICT_GRACE", "-1"),
        ("NODE_DISK_BYTES", "10GB"),
        ("NODE_PROBE_TOLERANCE", "0"),
        ("NODE_PROBE_TOLERANCE", "much"),
        ("TRUSTED_KEYS", "/nowhere/keys.pem"),
    ],
)
def test_a_wrong_variable_is_named(env: dict[str, str], variable: str, value: str) -> None:
    with pytest.raises(SettingError, match=f"LOREKEEPER_{variable} "):
        Settings.from_env({**env, f"LOREKEEPER_{variable}": value})


def test_secrets_are_not_shown(env: dict[str, str]) -> None:
    shown = repr(Settings.from_env(env))
    assert "lk_secret" not in shown
    assert "hidden" not in shown
