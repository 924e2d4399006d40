"""A node's disk, ledger and tombstones: real agents on one folder, killed at any point, beside an engine in memory.

An agent is killed at an engine call, a download, or any sync to disk; what it never synced is on disk all the same, as
after a SIGKILL.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from registry.naming import ATTESTATION_FILE, BUNDLE_FILE
from registry.signing.local_key import LocalKeySigner
from tests.unit.workers.node.kit import MemoryEngine, Release, Rig, Store, sign_contents
from workers.node.commands import parse_evict, parse_fetch, parse_warm
from workers.node.disk.janitor import sweep
from workers.node.disk.scrub import Scrub
from workers.node.engines.ports import Boot, LoadedAdapter
from workers.node.errors import EngineAwayError, EngineFailedError, EngineRefusedError, NodeError
from workers.node.heartbeat import Heartbeat
from workers.node.jobs.evict import evict
from workers.node.jobs.fetch import fetch
from workers.node.jobs.warm import warm
from workers.node.limits import Limits
from workers.node.reports import Outcome

if TYPE_CHECKING:
    from workers.node.agent import Agent

GRACE_S = 10.0
MORE_THAN_ANY_GRACE_S = 1000.0
SHARED = {"adapter_config.json": b'{"r": 4}'}
CONTENTS: tuple[dict[str, bytes], ...] = (
    {**SHARED, "adapter_model.safetensors": b"weights of the first version"},
    {**SHARED, "adapter_model.safetensors": b"weights of the second one"},
    {**SHARED, "adapter_model.safetensors": b"weights of the first version", "README.md": b"the first, explained"},
)
# What a killed agent may leave beside a seal that it was just writing anew; no engine reads it.
TORN_SEALS = frozenset({f".{BUNDLE_FILE}.tmp", f".{ATTESTATION_FILE}.tmp"})

which = st.integers(0, len(CONTENTS) - 1)
fuses = st.one_of(st.none(), st.none(), st.integers(1, 40))


class Killed(BaseException):  # nothing may catch it, as nothing catches a SIGKILL
    """The agent ends here."""


class Fuse:
    """Kills the agent at the n-th thing that it does."""

    def __init__(self) -> None:
        self.left: int | None = None

    def burn(self) -> None:
        if self.left is None:
            return
        self.left -= 1
        if self.left <= 0:
            self.left = None
            raise Killed


FUSE = Fuse()


@dataclass
class CheckingEngine(MemoryEngine):
    """Looks at each folder that it is given, and remembers until when it may still read one that it was told to forget.

    Its clock and its releases are set by the machine.
    """

    clock: Callable[[], float] = lambda: 0.0
    releases: Mapping[str, Release] = field(default_factory=dict)
    reading_until: dict[str, float] = field(default_factory=dict)

    def boot(self) -> Boot:
        FUSE.burn()
        return super().boot()

    def list_loaded(self) -> tuple[LoadedAdapter, ...]:
        FUSE.burn()
        return super().list_loaded()

    def load(self, *, name: str, path: Path, pinned: bool = False) -> None:
        FUSE.burn()
        if not self.away:
            check_folder(path, self.releases[name])
        super().load(name=name, path=path)
        FUSE.burn()

    def unload(self, name: str) -> None:
        FUSE.burn()
        if name in self.roots and not self.away:
            self.reading_until[name] = self.clock() + GRACE_S
        super().unload(name)
        FUSE.burn()

    def restart(self, boot_id: str) -> None:
        super().restart(boot_id)
        self.reading_until.clear()


@dataclass
class BurningStore(Store):
    """May give other bytes than it was given."""

    lies: bool = False

    def __call__(self, request: httpx.Request) -> httpx.Response:
        FUSE.burn()
        answer = super().__call__(request)
        if self.lies and answer.status_code == 200:
            return httpx.Response(200, stream=httpx.ByteStream(b"x" * len(answer.read())))
        return answer


def check_folder(folder: Path, release: Release, *, torn: frozenset[str] = frozenset()) -> None:
    """The release's files, byte for byte, its two seals, and nothing else but the names in ``torn``."""
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in torn
    }
    assert found == {
        **release.contents,
        BUNDLE_FILE: release.bundle.encode(),
        ATTESTATION_FILE: release.attestation.encode(),
    }


class NodeCache(RuleBasedStateMachine):
    key: ClassVar[LocalKeySigner] = LocalKeySigner(ec.generate_private_key(ec.SECP256R1()))
    signed: ClassVar[tuple[Release, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        FUSE.left = None
        if not NodeCache.signed:
            NodeCache.signed = tuple(
                sign_contents(self.key, contents, version=f"v{number}") for number, contents in enumerate(CONTENTS)
            )
        self.root = Path(tempfile.mkdtemp(prefix="lorekeeper-cache-"))
        self.rig = Rig(self.root, self.key, download_threads=1)
        self.engine = CheckingEngine(clock=self.rig.clock, releases={release.name: release for release in self.signed})
        self.store = BurningStore()
        self.rig.engine, self.rig.store = self.engine, self.store
        for release in self.signed:
            self.store.add(release)
        self.agent: Agent = self.rig.agent()
        self.known_generations = [0] * len(CONTENTS)
        self.unfinished: dict[int, Callable[[], Outcome | None]] = {}
        self.boots = 1
        self.generation = 1

    def teardown(self) -> None:
        FUSE.left = None
        self.agent.fetcher.close()
        shutil.rmtree(self.root)

    # --- commands

    @initialize()
    def all_are_loaded(self) -> None:
        for index in range(len(CONTENTS)):
            self.warm_it(index, None)

    @rule(index=which, fuse=fuses)
    def warm_it(self, index: int, fuse: int | None) -> None:
        self.generation += 1
        self._command(index, self._warming(index, self.generation), self.generation, "warm", fuse)

    @rule(index=which, fuse=fuses, swept_after=st.sampled_from([None, 0.0, GRACE_S - 1, GRACE_S + 1]))
    def evict_it(self, index: int, fuse: int | None, swept_after: float | None) -> None:
        self.generation += 1
        self._command(index, self._evicting(index, self.generation), self.generation, "evict", fuse)
        if swept_after is not None:
            self.time_passes_and_it_sweeps(swept_after, None)

    @rule(index=which, fuse=fuses)
    def fetch_it(self, index: int, fuse: int | None) -> None:
        self.generation += 1
        self._command(index, self._fetching(index, self.generation), self.generation, "fetch", fuse)

    @rule(index=which, fuse=fuses, drain_s=st.sampled_from([0.0, 1.0]), busy=st.booleans())
    def demote_it(self, index: int, fuse: int | None, drain_s: float, busy: bool) -> None:
        """To the disk, its requests being waited for, or not as long as they last."""
        self.engine.busy = frozenset({self.signed[index].name}) if busy else frozenset()
        self.generation += 1
        act = self._demoting(index, self.generation, drain_s)
        self._command(index, act, self.generation, "demote", fuse)

    @rule(index=which, fuse=fuses)
    def the_last_command_comes_again(self, index: int, fuse: int | None) -> None:
        newest = self._newest(index)
        if newest is None:
            return
        generation, act = newest
        self._command(index, self._making(act)(index, generation), generation, act, fuse)

    @rule(index=which, ago=st.integers(0, 5), act=st.sampled_from(["warm", "fetch", "evict", "demote"]))
    def a_stale_command_changes_nothing(self, index: int, ago: int, act: str) -> None:
        newest, known = self._newest(index) or (0, act)
        if newest - ago < 1 or (ago == 0 and act == known):
            return
        before, calls = self._everything(), len(self.engine.calls)
        assert self._making(act)(index, newest - ago)() is None
        assert self._everything() == before
        assert self.engine.calls[calls:] == []

    @rule(index=which)
    def a_warm_without_a_valid_grant_changes_nothing(self, index: int) -> None:
        before = self._everything()
        release = self.signed[index]
        self.generation += 1
        command = release.warm(generation=self.generation, granted={"node": "else"})
        outcome = warm(self.agent, parse_warm(command))
        assert outcome is not None
        assert (outcome.outcome, outcome.error_class) == ("failed", "refused")
        assert self._everything() == before

    def _warming(self, index: int, generation: int) -> Callable[[], Outcome | None]:
        command = parse_warm(self.signed[index].warm(generation=generation))
        return lambda: warm(self.agent, command)

    def _making(self, act: str) -> Callable[[int, int], Callable[[], Outcome | None]]:
        return {
            "warm": self._warming,
            "fetch": self._fetching,
            "evict": self._evicting,
            "demote": self._demoting,
        }[act]

    def _fetching(self, index: int, generation: int) -> Callable[[], Outcome | None]:
        command = parse_fetch(self.signed[index].fetch(generation=generation))
        return lambda: fetch(self.agent, command)

    def _demoting(self, index: int, generation: int, drain_s: float = 0) -> Callable[[], Outcome | None]:
        release = self.signed[index]
        command = parse_evict(release.evict(generation=generation, grace_s=0, to="disk", drain_s=drain_s))
        return lambda: evict(self.agent, command)

    def _evicting(self, index: int, generation: int) -> Callable[[], Outcome | None]:
        command = parse_evict(self.signed[index].evict(generation=generation, grace_s=0))
        return lambda: evict(self.agent, command)

    def _command(
        self, index: int, act: Callable[[], Outcome | None], generation: int, kind: str, fuse: int | None
    ) -> None:
        FUSE.left = fuse
        try:
            outcome = act()
        except Killed:
            self.unfinished[index] = act
            self._start_anew()
            return
        finally:
            FUSE.left = None
        self._concluded(index, act, outcome, kind)
        if outcome and outcome.outcome == "loaded" and generation == self.generation:
            assert self.signed[index].name not in self.agent.tombstones.names()
        assert self._newest(index) == (generation, kind)

    def _concluded(self, index: int, act: Callable[[], Outcome | None], outcome: Outcome | None, kind: str) -> None:
        """Control sends an evict again and again until it succeeds; a warm that failed may be left at that."""
        name = self.signed[index].name
        assert outcome is not None
        self.unfinished.pop(index, None)
        if outcome.outcome == "loaded":
            assert self.engine.roots[name] == str(self.agent.cache.folder(name))
        elif outcome.outcome == "evicted":
            assert name not in self.engine.roots
        elif outcome.outcome == "on_disk":
            assert name in self.agent.cache.names()
            assert kind == "fetch" or name not in self.engine.roots
        elif kind in {"evict", "demote"}:
            self.unfinished[index] = act

    def _newest(self, index: int) -> tuple[int, str] | None:
        """Generation and act of the newest command that the ledger knows."""
        entry = self.agent.ledger.entry(self.signed[index].name)
        return (entry.generation, entry.act) if entry else None

    # --- the world around it

    @rule(junk=st.booleans())
    def the_agent_restarts(self, junk: bool) -> None:
        if junk:
            (self.root / "partial" / "half.part").write_bytes(b"half of a fi")
            (self.root / "partial" / self.signed[0].name).mkdir(exist_ok=True)
            (self.root / "blobs" / ("0" * 64)).write_bytes(b"nobody's")
        self._start_anew()
        assert list((self.root / "partial").iterdir()) == []
        assert not (self.root / "blobs" / ("0" * 64)).exists()

    def _start_anew(self) -> None:
        self.agent.fetcher.close()
        self.agent = self.rig.agent()

    @rule(budget=st.sampled_from([None, 1, 40, 90]), ttl_s=st.sampled_from([None, None, GRACE_S / 2, GRACE_S * 3]))
    def web_sets_other_limits(self, budget: int | None, ttl_s: float | None) -> None:
        """The agent drops what is used least when its disk gets tight."""
        self.rig.limits = Limits(disk_bytes=budget, disk_ttl_s=ttl_s, high_water=0.9, low_water=0.5)
        self.agent.limits.now = self.rig.limits

    @rule(fuse=fuses)
    def it_scrubs(self, fuse: int | None) -> None:
        self._fused(Scrub(self.agent, wait=lambda _: False).round, fuse)

    @rule()
    def the_engine_restarts(self) -> None:
        self.boots += 1
        self.engine.away = False
        self.engine.restart(f"boot-{self.boots}")

    @rule(index=which)
    def somebody_loads_one_by_hand(self, index: int) -> None:
        folder = self.agent.cache.folder(self.signed[index].name)
        if folder.is_dir() and not self._is_damaged(folder, self.signed[index]):
            self.engine.roots[folder.name] = str(folder)

    @staticmethod
    def _is_damaged(folder: Path, release: Release) -> bool:
        return any((folder / path).read_bytes() != data for path, data in release.contents.items())

    @rule(
        away=st.sampled_from([False, False, True]),
        error=st.sampled_from([None, None, EngineRefusedError("no"), EngineFailedError("no"), EngineAwayError("no")]),
        status=st.sampled_from([200, 200, 404, 503]),
        lies=st.sampled_from([False, False, True]),
    )
    def things_go_wrong_from_now_on(self, away: bool, error: NodeError | None, status: int, lies: bool) -> None:
        self.engine.away, self.engine.load_error = away, error
        self.store.status, self.store.lies = status, lies

    @rule()
    def all_is_well_again(self) -> None:
        self.things_go_wrong_from_now_on(away=False, error=None, status=200, lies=False)

    @rule(index=which, how=st.sampled_from(["flip", "truncate", "remove"]), path=st.integers(0, 2))
    def the_disk_damages_a_file_while_nothing_reads_it(self, index: int, how: str, path: int) -> None:
        self.the_engine_restarts()
        files = self.signed[index].files
        blob = self.root / "blobs" / files[path % len(files)].sha256
        if not blob.exists():
            return
        if how == "remove":
            blob.unlink()
            return
        data = blob.read_bytes()
        blob.chmod(0o644)
        blob.write_bytes(data[:-1] if how == "truncate" else bytes([data[0] ^ 1]) + data[1:])

    @rule(seconds=st.sampled_from([0.0, 1.0, GRACE_S - 1, GRACE_S, GRACE_S + 1]), fuse=fuses)
    def time_passes_and_it_sweeps(self, seconds: float, fuse: int | None) -> None:
        self.rig.clock.time += seconds
        self._fused(lambda: sweep(self.agent), fuse)

    @rule(unknown=st.lists(which, unique=True), fuse=fuses)
    def it_beats(self, unknown: list[int], fuse: int | None) -> None:
        self.rig.web.unknown = [self.signed[index].name for index in unknown]
        self._fused(Heartbeat(self.agent).beat, fuse)

    def _fused(self, act: Callable[[], object], fuse: int | None) -> None:
        FUSE.left = fuse
        try:
            act()
        except Killed:
            self._start_anew()
        finally:
            FUSE.left = None

    # --- what always holds

    @invariant()
    def what_an_engine_may_read_is_there_whole(self) -> None:
        for name in self._readable():
            check_folder(self.root / "versions" / name, self.engine.releases[name], torn=TORN_SEALS)

    @invariant()
    def generations_never_go_back(self) -> None:
        known = [(self._newest(index) or (0, ""))[0] for index in range(len(CONTENTS))]
        assert all(now >= before for now, before in zip(known, self.known_generations, strict=True))
        self.known_generations = known

    @invariant()
    def the_agent_is_not_left_busy(self) -> None:
        assert not self.agent.lanes.count()

    @precondition(lambda self: not self.engine.away)
    @rule()
    def when_all_is_done_nothing_is_left_over(self) -> None:
        """Celery brings back what was not finished; the rest goes when its grace is over."""
        for act in list(self.unfinished.values()):
            act()
        self.unfinished.clear()
        self.rig.clock.time += MORE_THAN_ANY_GRACE_S
        sweep(self.agent)
        names = set(self.agent.cache.names())
        assert not {name for name in names - set(self.engine.roots) if self._has_to_go(name)}
        used = {path.stat().st_ino for name in names for path in (self.root / "versions" / name).rglob("*")}
        assert {path.stat().st_ino for path in (self.root / "blobs").iterdir()} <= used
        assert list((self.root / "partial").iterdir()) == []

    def _has_to_go(self, name: str) -> bool:
        """Whether its last command took it away for good, or showed that it can never be loaded."""
        entry = self.agent.ledger.entry(name)
        outcome = entry.outcome if entry else None
        if entry is None or outcome is None:
            return False
        return outcome.outcome == "evicted" or (entry.act == "warm" and outcome.error_class in {"permanent", "refused"})

    # --- the machine's own view

    def _readable(self) -> set[str]:
        now = self.rig.clock()
        return {*self.engine.roots, *(name for name, until in self.engine.reading_until.items() if now < until)}

    def _everything(self) -> dict[str, Any]:
        """What is on disk but the outbox, and what the engine has."""
        found: dict[str, Any] = {
            str(path.relative_to(self.root)): (path.read_bytes(), path.stat().st_ino)
            for path in self.root.rglob("*")
            if path.is_file() and "outbox" not in path.parts
        }
        return {**found, "engine": dict(self.engine.roots)}


@pytest.mark.parametrize("examples", [25, pytest.param(200, marks=pytest.mark.e2e)])
def test_a_nodes_cache_keeps_its_promises(monkeypatch: pytest.MonkeyPatch, examples: int) -> None:
    monkeypatch.setattr(os, "fsync", lambda _descriptor: FUSE.burn())
    run_machine(NodeCache, settings=settings(max_examples=examples, stateful_step_count=40))
