"""The copy of the routing snapshot on the disk, from which a gateway serves that starts while Postgres is away.

A file of JSON lines: first what it is, then rows of the routing views, at last the SHA-256 of all the lines before. It
is written beside and renamed, so that there is always a whole one, and holds no key of a client but as a digest. Of the
processes of one host that share a folder, one at a time writes: who holds the lock.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import logging
import os
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import orjson
from psycopg.conninfo import conninfo_to_dict

from gateway.routing.current import CurrentSnapshot
from gateway.routing.snapshot import (
    Alias,
    ColdRule,
    Draft,
    Node,
    Residency,
    RoutingRows,
    RoutingSnapshot,
    Row,
    TenantRules,
    Token,
    Version,
)

_log = logging.getLogger(__name__)

_FORMAT: Final = "lorekeeper-routing"
_VERSION: Final = 1
_NAME: Final = "routing.jsonl"
_SLICE: Final = 500
_SHORTEST_REST_S: Final = 1.0
# Writing takes at most this share of the time.
_SHARE: Final = 0.02
# So that the age of a copy tells how long the database has been away.
_LONGEST_REST_S: Final = 60.0
_NO_SPLIT: Final = (None,) * 7
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class CopyRefused(Exception):
    """A copy that is damaged, of another form, of another database or open to others; the message says which."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a copy says, and for how many seconds the database has not confirmed it."""

    snapshot: RoutingSnapshot
    age_s: float


class DiskCopy:
    """The copy in a folder, of one database."""

    def __init__(self, folder: Path, *, database_url: str) -> None:
        """`folder` is made when it's needed, for nobody but the owner."""
        self._folder = folder
        self._path = folder / _NAME
        self._database = _fingerprint(database_url)

    def load(self) -> Kept | None:
        """Read the copy; None if there is none.

        Raises CopyRefused.
        """
        try:
            with self._path.open("rb") as file:
                _require_private(file.fileno())
                lines = file.read().splitlines(keepends=True)
        except FileNotFoundError:
            return None
        except OSError as error:
            message = f"{self._path} can't be read: {error.strerror}"
            raise CopyRefused(message) from error
        return self._kept(lines)

    async def keep(self, current: CurrentSnapshot) -> None:
        """Write what comes in force, at most every second, a revocation at once; until cancelled."""
        while True:
            await _until_worth_keeping(current)
            with self._lock() as is_ours:
                if is_ours:
                    await self._write_on(current)
            await asyncio.sleep(_SHORTEST_REST_S)

    async def write(self, snapshot: RoutingSnapshot, *, age_s: float = 0.0) -> None:
        """Put the snapshot in place of the copy there is, in slices between which the event loop serves others.

        Raises OSError.
        """
        head = {"format": _FORMAT, "version": _VERSION, "database": self._database, "at": time.time() - age_s}
        lines = [orjson.dumps(head)] + [orjson.dumps(part) async for part in _parts(snapshot)]
        await asyncio.to_thread(self._put, b"\n".join((*lines, b"")))

    async def _write_on(self, current: CurrentSnapshot) -> None:
        """Write until that fails."""
        while True:
            change, began = current.change(), time.monotonic()
            current.revocation.clear()
            try:
                await self.write(current.get(), age_s=current.age_s or 0.0)
            except OSError as error:
                _log.warning("the routing data can't be kept in %s: %s", self._folder, error.strerror)
                return
            await _rest(current, change, at_least_s=max(_SHORTEST_REST_S, (time.monotonic() - began) / _SHARE))

    def _put(self, content: bytes) -> None:
        new = self._path.with_suffix(".new")
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.write(orjson.dumps({"sha256": hashlib.sha256(content).hexdigest()}) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        new.rename(self._path)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextmanager
    def _lock(self) -> Iterator[bool]:
        """Whether the folder is this process's to write in; the lock goes with the process, however it ends."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._folder / "routing.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            _log.warning("the routing data can't be kept in %s: %s", self._folder, error.strerror)
            yield False
            return
        try:
            yield self._is_ours(descriptor)
        finally:
            os.close(descriptor)

    def _is_ours(self, descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            # Some filesystems have no locks, or have run out of them.
            _log.warning("the routing data can't be kept in %s: %s", self._folder, error.strerror)
            return False
        return True

    def _kept(self, lines: list[bytes]) -> Kept:
        try:
            head, *parts, end = (orjson.loads(line) for line in lines)
            digest = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
            self._require_ours(head)
            if end != {"sha256": digest}:
                message = f"{self._path} is damaged: its checksum is wrong"
                raise CopyRefused(message)
            return Kept(_snapshot(parts), age_s=max(0.0, time.time() - float(head["at"])))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            message = f"{self._path} is damaged: {error}"
            raise CopyRefused(message) from error

    def _require_ours(self, head: dict[str, Any]) -> None:
        if (head["format"], head["version"]) != (_FORMAT, _VERSION):
            message = f"{self._path} has another form than this gateway writes"
            raise CopyRefused(message)
        if head["database"] != self._database:
            message = f"{self._path} was made from another database"
            raise CopyRefused(message)


async def _until_worth_keeping(current: CurrentSnapshot) -> None:
    """Until it isn't what is on the disk already: it was read from the database, or something in it was revoked."""
    while current.source != "database" and not (current.is_ready and current.revocation.is_set()):
        await asyncio.wait({current.change()}, timeout=_SHORTEST_REST_S)


async def _rest(current: CurrentSnapshot, change: asyncio.Future[None], *, at_least_s: float) -> None:
    """Until there is something else to keep, but so long at least; not at all after a revocation."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(at_least_s):
            await current.revocation.wait()
        return
    await asyncio.wait({change}, timeout=_LONGEST_REST_S)


def _require_private(descriptor: int) -> None:
    """Whoever can write the copy decides where requests go."""
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
        message = "it must belong to the gateway's user and be closed to others (chmod 600)"
        raise CopyRefused(message)


def _fingerprint(database_url: str) -> str:
    """Which database it is, whoever connects to it."""
    facts = conninfo_to_dict(database_url)
    return hashlib.sha256("\0".join(str(facts.get(key, "")) for key in ("host", "port", "dbname")).encode()).hexdigest()


async def _parts(snapshot: RoutingSnapshot) -> AsyncIterator[dict[str, list[Row]]]:
    for view, facts in _views(snapshot):
        while rows := list(islice(facts, _SLICE)):
            yield {view: rows}
            await asyncio.sleep(0)


def _views(snapshot: RoutingSnapshot) -> Iterator[tuple[str, Iterator[Row]]]:
    """The rows of each view, as they were read."""
    yield "aliases", (_alias_row(alias) for own in snapshot.aliases.values() for alias in own.values())
    yield "versions", map(_columns(Version), snapshot.versions.values())
    yield "nodes", map(_columns(Node), snapshot.nodes.values())
    yield "residencies", map(_columns(Residency), chain.from_iterable(snapshot.residencies.values()))
    yield "tokens", map(_columns(Token), snapshot.tokens.values())
    yield "rules", map(_rules_row, snapshot.rules.values())
    cold = _columns(ColdRule)
    yield "cold_rules", ((*key, *cold(rule)) for key, rule in snapshot.cold_rules.items())


def _columns(kind: type[Any]) -> Callable[[Any], Row]:
    return attrgetter(*(one.name for one in fields(kind) if one.init))


def _alias_row(alias: Alias) -> Row:
    row: Row = (alias.tenant, alias.name, alias.version_id, alias.revision)
    split = alias.split
    if split is not None:
        allow, deny = sorted(split.allow), sorted(split.deny)
        shares = (split.candidate_id, split.basis_points, split.salt, allow, deny)
        row = (*row, *shares, split.shadow_id, split.shadow_basis_points)
    elif alias.is_shared:
        row = (*row, *_NO_SPLIT)
    return (*row, alias.owner) if alias.is_shared else row


def _rules_row(rules: TenantRules) -> Row:
    *limits, base_models, allows_shadow = _columns(TenantRules)(rules)
    return (*limits, sorted(base_models), allows_shadow)


# What JSON has as text, by the number of the column.
_TYPED: Final[dict[str, dict[int, Callable[[str], object]]]] = {
    "aliases": {2: UUID, 4: UUID, 9: UUID},
    "versions": {0: UUID},
    "residencies": {1: UUID},
    "tokens": {3: datetime.fromisoformat},
}


def _snapshot(parts: list[dict[str, list[list[Any]]]]) -> RoutingSnapshot:
    draft = Draft()
    for part in parts:
        for view, rows in part.items():
            draft.take(RoutingRows(**{view: [_typed(row, _TYPED.get(view, {})) for row in rows]}))
    return draft.snapshot()


def _typed(row: list[Any], types: dict[int, Callable[[str], object]]) -> Row:
    for column, read in types.items():
        if column < len(row) and row[column] is not None:
            row[column] = read(row[column])
    return tuple(row)
