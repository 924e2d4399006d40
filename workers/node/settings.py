"""The agent's settings, all from the environment."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from registry.naming import BadName, check_name
from workers.exposition import Address, parse_address
from workers.node.engines.capabilities import CAPABILITIES
from workers.node.engines.restart import parse_command
from workers.node.errors import SettingError

MAX_COUNT = 256

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Settings:
    """What this agent is told at its start.

    Attributes:
        node: the node's name; its queue is `node.<name>`.
        web_url: of the registry, without a trailing slash.
        token: the node's token for reports.
        broker_url: where commands come from.
        cache: the folder that this agent owns; the engine reads below it.
        engine_kind: which driver.
        engine_url: of the node's engine, without a trailing slash; never taken from a command.
        engine_restart: what to run to have the engine's process restarted; empty when the operator gives no way.
        engine_start_s: the engine may take so many seconds to start.
        engine_token: of our residency plugin in a vLLM; empty when it runs without.
        base_model: the name under which the engine serves its base.
        trusted_keys: a file with the public keys whose signatures and grants count (PEM, or a saved keys.json); it is
            read again when it changes.
        heartbeat_s: seconds between reports.
        evict_grace_s: at least so many seconds lie between an unload and the deletion of files.
        probe_tolerance: how many nats a token the engine may read otherwise than the worker that validated.
        disk_bytes: budget of the cache in bytes; None leaves it to the free disk.
        commands: how many commands of each kind may be in work at once.
        load_queue: how many loads may wait for the engine; more are refused.
        health_s: seconds between two checks of the base and a loaded version; 0 does without.
        scrub_s: seconds between two rounds of reading the disk again.
        standstill_s: an engine that does nothing for so many seconds, though it is asked, hangs and is to be restarted;
            0 does without. Less than a check may take (60 s), or only a load finds out.
        load_s: the engine may take so many seconds to load a version, and do nothing else meanwhile.
        metrics: where /metrics is answered; None: nowhere.

    """

    node: str
    web_url: str
    token: str = field(repr=False)
    broker_url: str = field(repr=False)
    cache: Path
    engine_kind: str
    engine_url: str
    engine_restart: tuple[str, ...]
    engine_start_s: float
    engine_token: str = field(repr=False)
    base_model: str
    trusted_keys: Path
    heartbeat_s: float
    evict_grace_s: float
    probe_tolerance: float
    disk_bytes: int | None
    commands: int = 32
    load_queue: int = 16
    health_s: float = 60.0
    scrub_s: float = 60.0
    standstill_s: float = 50.0
    load_s: float = 240.0
    metrics: Address | None = None

    @property
    def queue(self) -> str:
        return f"node.{self.node}"

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "Settings":
        """Read LOREKEEPER_NODE_NAME and its kin.

        Raises:
            SettingError: a variable is missing or wrong; the text names it and never repeats a secret.

        """
        return cls(
            node=_read(env, "NODE_NAME", _name),
            web_url=_read(env, "WEB_URL", _http_url),
            token=_read(env, "NODE_TOKEN", _text),
            broker_url=_read(env, "BROKER_URL", _text),
            cache=_read(env, "NODE_CACHE", _absolute_path),
            engine_kind=_read(env, "NODE_ENGINE", _engine_kind, default="vllm"),
            engine_url=_read(env, "NODE_ENGINE_URL", _http_url),
            engine_restart=_read(env, "NODE_ENGINE_RESTART", parse_command, default="[]"),
            engine_start_s=_read(env, "NODE_ENGINE_START", _seconds, default="600"),
            engine_token=env.get("LOREKEEPER_NODE_ENGINE_TOKEN", "").strip(),
            base_model=_read(env, "NODE_BASE_MODEL", _text),
            trusted_keys=_read(env, "TRUSTED_KEYS", _existing_file),
            heartbeat_s=_read(env, "NODE_HEARTBEAT", _seconds, default="2"),
            evict_grace_s=_read(env, "EVICT_GRACE", _seconds, default="300"),
            probe_tolerance=_read(env, "NODE_PROBE_TOLERANCE", _nats, default="0.12"),
            disk_bytes=_read(env, "NODE_DISK_BYTES", _bytes) if env.get("LOREKEEPER_NODE_DISK_BYTES") else None,
            commands=_read(env, "NODE_COMMANDS", _count, default="32"),
            load_queue=_read(env, "NODE_LOAD_QUEUE", _count, default="16"),
            health_s=_read(env, "NODE_HEALTH_SECONDS", _seconds, default="60"),
            scrub_s=_read(env, "NODE_SCRUB_SECONDS", _seconds, default="60"),
            standstill_s=_read(env, "NODE_STANDSTILL_SECONDS", _seconds, default="50"),
            load_s=_read(env, "NODE_LOAD_SECONDS", _seconds, default="240"),
            metrics=_read(env, "NODE_METRICS", parse_address) if env.get("LOREKEEPER_NODE_METRICS") else None,
        )


def _read(env: Mapping[str, str], name: str, convert: Callable[[str], _T], *, default: str = "") -> _T:
    variable = f"LOREKEEPER_{name}"
    value = env.get(variable, "").strip() or default
    if not value:
        raise SettingError(f"{variable} is missing")
    try:
        return convert(value)
    except ValueError as error:
        raise SettingError(f"{variable} {error}") from error


def _text(value: str) -> str:
    return value


def _name(value: str) -> str:
    try:
        return check_name(value)
    except BadName as error:
        raise ValueError(f"is not a node name: {error}") from error


def _engine_kind(value: str) -> str:
    if value not in CAPABILITIES:
        raise ValueError(f"must be one of {', '.join(CAPABILITIES)}, not {value!a}")
    return value


def _http_url(value: str) -> str:
    url = urlsplit(value)
    if url.scheme not in {"http", "https"} or not url.hostname or url.query or url.fragment:
        raise ValueError("must be an http or https URL")
    return value.rstrip("/")


def _absolute_path(value: str) -> Path:
    return Path(value).expanduser().absolute()


def _existing_file(value: str) -> Path:
    path = _absolute_path(value)
    if not path.is_file():
        raise ValueError("must name a file")
    return path


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"must be a number of seconds, not {value!a}")
    return seconds


def _nats(value: str) -> float:
    try:
        nats = float(value)
    except ValueError:
        nats = math.nan
    if not (math.isfinite(nats) and nats > 0):
        raise ValueError(f"must be a number of nats above 0, not {value!a}")
    return nats


def _count(value: str) -> int:
    if not value.isdecimal() or not 1 <= int(value) <= MAX_COUNT:
        raise ValueError(f"must be a number from 1 to {MAX_COUNT}, not {value!a}")
    return int(value)


def _bytes(value: str) -> int:
    if not value.isdecimal() or int(value) == 0:
        raise ValueError(f"must be a number of bytes, not {value!a}")
    return int(value)
