"""Settings of a gateway process, read from the environment once at start."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from gateway.path.hedging import Hedging
from gateway.spans.sender import Receiver

_REQUIRED = ("LOREKEEPER_GATEWAY_DB_URL", "LOREKEEPER_WEB_URL", "LOREKEEPER_GATEWAY_TOKEN")
_COLD_WAIT_S = 30.0
_SNAPSHOT_POLL_S = 3.0
_UPSTREAM_TIMEOUT_S = 600.0
_DRAIN_S = 30.0
_SHADOWS = 8
_MOST_SHADOWS = 1000
_CLIENTS = ("llhttp", "aiohttp")
_MOST_PROCESSES = 256
_FEEDBACK_PER_MINUTE = 12_000
_MOST_FEEDBACK = 10_000_000
_SPOOL_BYTES = 1024**3
_MIN_SPOOL_BYTES = 1024**2
_QUANTILE = re.compile(r"p([5-9][0-9](?:\.[0-9]+)?)")
_HEDGED_SHARE = 0.05


class SettingsError(Exception):
    """A setting is missing or isn't what it should be; the message names the variable."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be chosen from outside. Times are in seconds, sizes in bytes."""

    database_url: str = field(repr=False)
    web_url: str
    gateway_token: str = field(repr=False)
    cold_wait_s: float = _COLD_WAIT_S
    snapshot_poll_s: float = _SNAPSHOT_POLL_S
    upstream_timeout_s: float = _UPSTREAM_TIMEOUT_S
    upstream_connections: int = 1024
    drain_s: float = _DRAIN_S
    drain_notice_s: float = 0.0
    client: str = _CLIENTS[0]
    processes: int = 1
    metrics_token: str = field(default="", repr=False)
    max_body_bytes: int = 8 * 1024 * 1024
    max_json_depth: int = 64
    body_timeout_s: float = 30.0
    max_waiting: int = 2000
    max_waiting_each: int = 500
    shadows: int = _SHADOWS
    shadow_share: float = 0.1
    feedback_per_minute: int = _FEEDBACK_PER_MINUTE
    record_bound: int = 50_000
    record_flush_s: float = 1.0
    state_folder: Path | None = None
    spool_bytes: int = _SPOOL_BYTES
    hedging: Hedging | None = None
    traces: Receiver | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read the settings; raises SettingsError that names the first wrong variable."""
        missing = [name for name in _REQUIRED if not env.get(name)]
        if missing:
            message = f"not set: {', '.join(missing)}"
            raise SettingsError(message)
        return cls(
            database_url=_database_url(env["LOREKEEPER_GATEWAY_DB_URL"]),
            web_url=env["LOREKEEPER_WEB_URL"].rstrip("/"),
            gateway_token=env["LOREKEEPER_GATEWAY_TOKEN"],
            cold_wait_s=_seconds(env, "LOREKEEPER_COLD_WAIT", _COLD_WAIT_S),
            snapshot_poll_s=_seconds(env, "LOREKEEPER_SNAPSHOT_POLL", _SNAPSHOT_POLL_S),
            upstream_timeout_s=_seconds(env, "LOREKEEPER_UPSTREAM_TIMEOUT", _UPSTREAM_TIMEOUT_S),
            drain_s=_seconds(env, "LOREKEEPER_GATEWAY_DRAIN", _DRAIN_S),
            drain_notice_s=_seconds(env, "LOREKEEPER_GATEWAY_DRAIN_NOTICE", 0.0),
            client=_one_of(env, "LOREKEEPER_GATEWAY_CLIENT", _CLIENTS),
            metrics_token=env.get("LOREKEEPER_GATEWAY_METRICS_TOKEN", ""),
            processes=_count(env, "LOREKEEPER_GATEWAY_PROCESSES", 1, least=1, most=_MOST_PROCESSES),
            shadows=_count(env, "LOREKEEPER_GATEWAY_SHADOWS", _SHADOWS, least=0, most=_MOST_SHADOWS),
            feedback_per_minute=_count(
                env, "LOREKEEPER_GATEWAY_FEEDBACK", _FEEDBACK_PER_MINUTE, least=1, most=_MOST_FEEDBACK
            ),
            state_folder=_folder(env.get("LOREKEEPER_GATEWAY_STATE_FOLDER")),
            spool_bytes=_bytes(env, "LOREKEEPER_GATEWAY_SPOOL_BYTES", _SPOOL_BYTES, least=_MIN_SPOOL_BYTES),
            hedging=_hedging(env),
            traces=_traces(env),
        )


def _database_url(url: str) -> str:
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # libpq's own message repeats the whole text, password and all, and would be logged at each try to connect.
        message = "LOREKEEPER_GATEWAY_DB_URL must be like postgresql://user:password@host:port/database"
        raise SettingsError(message) from None
    return url


def _one_of(env: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """The first of the choices where none is made."""
    text = env.get(name) or choices[0]
    if text not in choices:
        message = f"{name} must be one of {', '.join(choices)}, not {text!r}"
        raise SettingsError(message)
    return text


def _count(env: Mapping[str, str], name: str, default: int, *, least: int, most: int) -> int:
    text = env.get(name) or str(default)
    if not text.isdecimal() or not least <= int(text) <= most:
        message = f"{name} must be a number from {least} to {most}, not {text!r}"
        raise SettingsError(message)
    return int(text)


def _hedging(env: Mapping[str, str]) -> Hedging | None:
    name = "LOREKEEPER_GATEWAY_HEDGE_AFTER"
    text = env.get(name)
    if not text:
        return None
    share = _share(env, "LOREKEEPER_GATEWAY_HEDGE_SHARE", _HEDGED_SHARE)
    found = _QUANTILE.fullmatch(text)
    if found is not None:
        return Hedging(quantile=float(found[1]) / 100, share=share)
    try:
        return Hedging(after_s=_seconds(env, name, 0.0), share=share)
    except SettingsError as error:
        message = f"{error}, nor a percentile such as p95 (from p50 on)"
        raise SettingsError(message) from error


def _traces(env: Mapping[str, str]) -> Receiver | None:
    name = "LOREKEEPER_GATEWAY_TRACES_URL"
    url = env.get(name)
    if not url:
        return None
    if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname:
        message = f"{name} must be like http://collector:4318/v1/traces, not {url!r}"
        raise SettingsError(message)
    if not _has_opentelemetry():
        message = f"{name} needs OpenTelemetry: pip install 'lorekeeper[traces]'"
        raise SettingsError(message)
    headers = env.get("LOREKEEPER_GATEWAY_TRACES_HEADERS", "")
    return Receiver(url, headers, _share(env, "LOREKEEPER_GATEWAY_TRACES_SHARE", 1.0))


def _has_opentelemetry() -> bool:
    """Whether it's installed. To ask doesn't load it: only the process that sends does."""
    try:
        return all(find_spec(name) for name in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"))
    except ModuleNotFoundError:
        return False


def _share(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        message = f"{name} must be a number from 0 to 1, not {text!r}"
        raise SettingsError(message)
    return value


def _folder(name: str | None) -> Path | None:
    return Path(name) if name else None


def _bytes(env: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    text = env.get(name)
    if not text:
        return default
    if not text.isdecimal() or int(text) < least:
        message = f"{name} must be a number of bytes from {least} on, not {text!r}"
        raise SettingsError(message)
    return int(text)


def _seconds(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        message = f"{name} must be a number of seconds above 0, not {text!r}"
        raise SettingsError(message)
    return value
