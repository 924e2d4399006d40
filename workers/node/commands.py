"""Commands as they come from the queue: anything that is not exactly what the protocol says is refused."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from registry.naming import NamingError, check_digest, check_manifest_paths
from registry.reports import ProbeReference
from registry.signing.errors import GrantError
from registry.signing.grants import command_digest
from workers.node.errors import CommandError

# Beyond it a number has no form of its own in JSON.
MAX_GENERATION = 2**53 - 1
MAX_GRACE_S = 7 * 24 * 3600
MAX_DRAIN_S = 3600
MAX_TEXT_BYTES = 4 * 2**20
MAX_FILE_BYTES = 64 * 2**30
MAX_URL_LENGTH = 8192
MAX_LEAVING = 64

EvictTo = Literal["disk", "absent"]

_ENGINE_NAME = re.compile(r"lk-[a-z0-9-]{1,120}", re.ASCII)
_FILE_FIELDS = frozenset({"generation", "engine_name", "grant", "bundle", "attestation", "files"})


@dataclass(frozen=True, slots=True)
class WantedFile:
    """One file of a version and where to get it: `size` in bytes, `sha256` in lower-case hex."""

    path: str
    size: int
    sha256: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchCommand:
    """Bring this version's files to the disk; the agent checks grant (a JWT), bundle and attestation, not this.

    `digest` is the command's own, as it came: what its grant must be for.
    """

    digest: str
    generation: int
    engine_name: str
    grant: str
    bundle: str
    attestation: str
    files: tuple[WantedFile, ...]


@dataclass(frozen=True, slots=True)
class Leaving:
    """A name that is to leave the engine by a command of this generation, which comes or came by itself."""

    engine_name: str
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmCommand(FetchCommand):
    """Load this version, fetching it first where need be.

    `reference` is how base and adapter read a text where the version was validated, if they were run there. `pinned`:
    an engine that can do so keeps it in its slot. `leaving` are those whose places are given to others.
    """

    reference: ProbeReference | None
    pinned: bool
    leaving: tuple[Leaving, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictCommand:
    """Unload this name; the grant is checked by the agent, not here.

    Attributes:
        digest: the command's own, as it came: what its grant must be for.
        to: `disk` keeps the files, `absent` deletes them after the grace.
        drain_s: how many seconds at most to wait for the requests that the engine still has for it.
        grace_s: seconds after the unload in which the engine may still read the files.

    """

    digest: str
    generation: int
    engine_name: str
    grant: str
    grace_s: float
    to: EvictTo
    drain_s: float


def check_engine_name(value: object) -> str:
    """Return `value` if it may be a model name and a folder name; else raise `CommandError`."""
    if not isinstance(value, str) or not _ENGINE_NAME.fullmatch(value):
        raise CommandError("engine_name is not a name that Lorekeeper gives to engines")
    return value


def parse_warm(data: object) -> WarmCommand:
    """Read a `node.warm` command; raise `CommandError` with the field that is wrong.

    `pinned` and `leaving` may be left out.
    """
    digest = _digest(data)
    fields = _fields(data, _FILE_FIELDS | {"probe_reference"}, optional=frozenset({"pinned", "leaving"}))
    return WarmCommand(
        **_version(fields),
        digest=digest,
        reference=_reference(fields["probe_reference"]),
        pinned=_flag(fields, "pinned"),
        leaving=_leaving(fields.get("leaving", [])),
    )


def parse_fetch(data: object) -> FetchCommand:
    """Read a `node.fetch` command; raise `CommandError` with the field that is wrong."""
    digest = _digest(data)
    return FetchCommand(**_version(_fields(data, _FILE_FIELDS)), digest=digest)


def parse_evict(data: object) -> EvictCommand:
    """Read a `node.evict` command; raise `CommandError` with the field that is wrong."""
    digest = _digest(data)
    fields = _fields(data, {"generation", "engine_name", "grant", "grace_s", "to", "drain_s"})
    if fields["to"] not in ("disk", "absent"):
        raise CommandError("to must be disk or absent")
    return EvictCommand(
        digest=digest,
        generation=_integer(fields, "generation", 1, MAX_GENERATION),
        engine_name=check_engine_name(fields["engine_name"]),
        grant=_text(fields, "grant"),
        grace_s=_seconds(fields, "grace_s", MAX_GRACE_S),
        to=cast("EvictTo", fields["to"]),
        drain_s=_seconds(fields, "drain_s", MAX_DRAIN_S),
    )


def _digest(data: object) -> str:
    """Of the command as it came, before anything else of it is read."""
    if not isinstance(data, dict):
        raise CommandError("the command must be an object")
    try:
        return command_digest(data)
    except GrantError as error:
        raise CommandError(str(error)) from error


def _version(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "generation": _integer(fields, "generation", 1, MAX_GENERATION),
        "engine_name": check_engine_name(fields["engine_name"]),
        "grant": _text(fields, "grant"),
        "bundle": _text(fields, "bundle"),
        "attestation": _text(fields, "attestation"),
        "files": _files(fields["files"]),
    }


def _seconds(fields: Mapping[str, Any], name: str, limit: int) -> float:
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= limit:
        raise CommandError(f"{name} must be 0 to {limit} seconds")
    return float(value)


def _fields(
    data: object, names: AbstractSet[str], *, optional: AbstractSet[str] = frozenset(), where: str = "the command"
) -> Mapping[str, Any]:
    """The fields of an object with exactly these names, and of the optional ones any."""
    if not isinstance(data, dict):
        raise CommandError(f"{where} must be an object")
    if missing := sorted(names - data.keys()):
        raise CommandError(f"{where} lacks {missing[0]}")
    if unknown := sorted(str(name) for name in data.keys() - names - optional):
        raise CommandError(f"{where} has an unknown field {unknown[0]!a}")
    return data


def _flag(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise CommandError(f"{name} must be true or false")
    return value


def _leaving(data: object) -> tuple[Leaving, ...]:
    if not isinstance(data, list) or len(data) > MAX_LEAVING:
        raise CommandError(f"leaving must be a list of at most {MAX_LEAVING}")
    found = [_fields(item, {"engine_name", "generation"}, where="one of leaving") for item in data]
    return tuple(
        Leaving(check_engine_name(each["engine_name"]), _integer(each, "generation", 1, MAX_GENERATION))
        for each in found
    )


def _integer(fields: Mapping[str, Any], name: str, low: int, high: int) -> int:
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise CommandError(f"{name} must be an integer from {low} to {high}")
    return value


def _text(fields: Mapping[str, Any], name: str, *, limit: int = MAX_TEXT_BYTES) -> str:
    value = fields[name]
    if not isinstance(value, str) or not 0 < len(value) <= limit:
        raise CommandError(f"{name} must be a text of 1 to {limit} characters")
    return value


def _reference(data: object) -> ProbeReference | None:
    try:
        return None if data is None else ProbeReference.from_json(data)
    except ValueError as error:
        raise CommandError(f"probe_reference: {error}") from error


def _files(data: object) -> tuple[WantedFile, ...]:
    if not isinstance(data, list):
        raise CommandError("files must be a list")
    files = tuple(_file(item) for item in data)
    try:
        check_manifest_paths(file.path for file in files)
    except NamingError as error:
        raise CommandError(str(error)) from error
    return files


def _file(data: object) -> WantedFile:
    fields = _fields(data, {"path", "size", "sha256", "url"}, where="a file")
    try:
        digest = check_digest(_text(fields, "sha256"))
    except NamingError as error:
        raise CommandError(str(error)) from error
    return WantedFile(
        path=_text(fields, "path"),
        size=_integer(fields, "size", 0, MAX_FILE_BYTES),
        sha256=digest,
        url=_url(_text(fields, "url", limit=MAX_URL_LENGTH)),
    )


def _url(value: str) -> str:
    try:
        url = urlsplit(value)
        host = url.hostname
    except ValueError as error:
        raise CommandError("url is not a URL") from error
    if url.scheme not in {"http", "https"} or not host or url.username is not None:
        raise CommandError("url must be http or https, with a host and without a user")
    return value


def address_of(data: object) -> tuple[str, int] | None:
    """Engine name and generation of a command that may be malformed otherwise; None if these are too."""
    if not isinstance(data, dict):
        return None
    try:
        return check_engine_name(data.get("engine_name")), _integer(data, "generation", 1, MAX_GENERATION)
    except (CommandError, KeyError):
        return None
