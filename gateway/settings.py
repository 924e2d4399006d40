"""Settings of a gateway process, read from the environment once at start."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import psycopg
from psycopg.conninfo import conninfo_to_dict

_REQUIRED = ("LOREKEEPER_GATEWAY_DB_URL", "LOREKEEPER_WEB_URL", "LOREKEEPER_GATEWAY_TOKEN")
_COLD_WAIT_S = 30.0
_SNAPSHOT_POLL_S = 3.0
_UPSTREAM_TIMEOUT_S = 600.0
_DRAIN_S = 30.0


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
    max_body_bytes: int = 8 * 1024 * 1024
    max_json_depth: int = 64
    body_timeout_s: float = 30.0
    max_waiting: int = 2000
    max_waiting_each: int = 500
    record_bound: int = 50_000
    record_flush_s: float = 0.5

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
        )


def _database_url(url: str) -> str:
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # libpq's own message repeats the whole text, password and all, and would be logged at each try to connect.
        message = "LOREKEEPER_GATEWAY_DB_URL must be like postgresql://user:password@host:port/database"
        raise SettingsError(message) from None
    return url


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
