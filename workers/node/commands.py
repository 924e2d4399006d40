"""Commands as they come from the queue: anything that is not exactly what the protocol says is refused."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from registry.naming import NamingError, check_digest, check_manifest_paths
from registry.reports import ProbeReference
from workers.node.errors import CommandError

MAX_GENERATION = 2**63 - 1
MAX_GRACE_S = 7 * 24 * 3600
MAX_TEXT_BYTES = 4 * 2**20
MAX_FILE_BYTES = 64 * 2**30
MAX_URL_LENGTH = 8192

_ENGINE_NAME = re.compile(r"lk-[a-z0-9-]{1,120}", re.ASCII)


@dataclass(frozen=True, slots=True)
class WantedFile:
    """One file of a version and where to get it: `size` in bytes, `sha256` in lower-case hex."""

    path: str
    size: int
    sha256: str
    url: str


@dataclass(frozen=True, slots=True)
class WarmCommand:
    """Load this version: grant (a JWT), bundle and attestation are checked by the agent, not here.

    `reference` is how base and adapter read a text where the version was validated, if they were run there.
    """

    generation: int
    engine_name: str
    grant: str
    bundle: str
    attestation: str
    files: tuple[WantedFile, ...]
    reference: ProbeReference | None


@dataclass(frozen=True, slots=True)
class EvictCommand:
    """Unload this name and delete its files after `grace_s` seconds; the grant is checked by the agent, not here."""

    generation: int
    engine_name: str
    grant: str
    grace_s: float


def check_engine_name(value: object) -> str:
    """Return `value` if it may be a model name and a folder name; else raise `CommandError`."""
    if not isinstance(value, str) or not _ENGINE_NAME.fullmatch(value):
        raise CommandError("engine_name is not a name that Lorekeeper gives to engines")
    return value


def parse_warm(data: object) -> WarmCommand:
    """Read a `node.warm` command; raise `CommandError` with the field that is wrong."""
    fields = _fields(data, {"generation", "engine_name", "grant", "bundle", "attestation", "files", "probe_reference"})
    return WarmCommand(
        generation=_integer(fields, "generation", 1, MAX_GENERATION),
        engine_name=check_engine_name(fields["engine_name"]),
        grant=_text(fields, "grant"),
        bundle=_text(fields, "bundle"),
        attestation=_text(fields, "attestation"),
        files=_files(fields["files"]),
        reference=_reference(fields["probe_reference"]),
    )


def parse_evict(data: object) -> EvictCommand:
    """Read a `node.evict` command; raise `CommandError` with the field that is wrong."""
    fields = _fields(data, {"generation", "engine_name", "grant", "grace_s"})
    grace = fields["grace_s"]
    if isinstance(grace, bool) or not isinstance(grace, (int, float)) or not 0 <= grace <= MAX_GRACE_S:
        raise CommandError(f"grace_s must be 0 to {MAX_GRACE_S} seconds")
    return EvictCommand(
        generation=_integer(fields, "generation", 1, MAX_GENERATION),
        engine_name=check_engine_name(fields["engine_name"]),
        grant=_text(fields, "grant"),
        grace_s=float(grace),
    )


def _fields(data: object, names: set[str], *, where: str = "the command") -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise CommandError(f"{where} must be an object")
    if missing := sorted(names - data.keys()):
        raise CommandError(f"{where} lacks {missing[0]}")
    if unknown := sorted(str(name) for name in data.keys() - names):
        raise CommandError(f"{where} has an unknown field {unknown[0]!a}")
    return data


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
