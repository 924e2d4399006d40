"""An engine that reads a version's files whenever it likes, as vLLM does, beside an agent that evicts and drops.

The engine knows names, keeps the weights of a few, and reads the path again when one of the others is asked for: it
dies when the files are gone or are others. Requests that were begun before an unload end after it. In the midst of a
call to the engine other work of the agent goes on, as its threads do: whatever doesn't wait for the call. The disk may
be full at any time, so that nothing can be noted.
"""

import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from registry.signing.local_key import LocalKeySigner
from tests.unit.workers.node.kit import FullDisk, MemoryEngine, Release, Rig, sign_contents
from workers.node.commands import parse_evict, parse_fetch, parse_warm
from workers.node.disk.janitor import keep_marks, make_room, sweep
from workers.node.disk.scrub import Scrub
from workers.node.engines.ports import LoadedAdapter
from workers.node.health.check import Health
from workers.node.heartbeat import Heartbeat
from workers.node.jobs.evict import evict
from workers.node.jobs.fetch import fetch
from workers.node.jobs.warm import warm
from workers.node.limits import Limits

if TYPE_CHECKING:
    from workers.node.agent import Agent

VERSIONS = 4
CPU_PLACES = 2
GRACE_S = 10.0
SHARED = {"adapter_config.json": b'{"r": 4}'}

which = st.integers(0, VERSIONS - 1)
meanwhile = st.lists(
    st.tuples(st.sampled_from(["sweep", "marks", "room", "scrub", "beat", "health", "evict", "fetch", "load"]), which),
    max_size=2,
)


@dataclass
class ReadingEngine(MemoryEngine):
    """Its `cpu` holds the weights of a few names; `running` are requests by name, each with the time of its unload."""

    contents: dict[str, dict[str, bytes]] = field(default_factory=dict)
    cpu: OrderedDict[str, None] = field(default_factory=OrderedDict)
    running: dict[str, tuple[str, float]] = field(default_factory=dict)
    in_the_midst: Callable[[], None] = lambda: None
    clock: Callable[[], float] = lambda: 0.0

    def list_loaded(self) -> tuple[LoadedAdapter, ...]:
        listed = super().list_loaded()
        self.in_the_midst()
        return listed

    def load(self, *, name: str, path: Path, pinned: bool = False) -> None:
        super().load(name=name, path=path, pinned=pinned)
        self.read(name, path)
        self.in_the_midst()

    def unload(self, name: str) -> None:
        self.in_the_midst()
        root = self.roots.get(name)
        super().unload(name)
        if root is not None:
            self.running[name] = (root, self.clock())

    def request(self, name: str) -> None:
        """One that names it: the weights come from memory, or from the disk again."""
        if name in self.cpu:
            self.cpu.move_to_end(name)
        else:
            self.read(name, Path(self.roots[name]))

    def end_late(self, name: str) -> None:
        """A request that was begun before the unload needs the weights once more."""
        root, unloaded = self.running.pop(name)
        if self.clock() < unloaded + GRACE_S and name not in self.cpu:
            self.read(name, Path(root))

    def read(self, name: str, path: Path) -> None:
        for file, data in self.contents[name].items():
            assert (path / file).read_bytes() == data, f"the engine dies: {file} of {name}"
        self.cpu[name] = None
        self.cpu.move_to_end(name)
        while len(self.cpu) > CPU_PLACES:
            self.cpu.popitem(last=False)

    def restart(self, boot_id: str) -> None:
        super().restart(boot_id)
        self.cpu.clear()
        self.running.clear()


class EngineReads(RuleBasedStateMachine):
    key: ClassVar[LocalKeySigner] = LocalKeySigner(ec.generate_private_key(ec.SECP256R1()))
    signed: ClassVar[tuple[Release, ...]] = ()
    disk: ClassVar[FullDisk] = FullDisk()

    def __init__(self) -> None:
        super().__init__()
        if not EngineReads.signed:
            EngineReads.signed = tuple(
                sign_contents(
                    self.key, {**SHARED, "adapter_model.safetensors": b"%d" % number * 20}, version=f"v{number}"
                )
                for number in range(VERSIONS)
            )
        self.root = Path(tempfile.mkdtemp(prefix="lorekeeper-reads-"))
        self.rig = Rig(self.root, self.key, download_threads=1)
        self.engine = ReadingEngine(
            clock=self.rig.clock, contents={release.name: dict(release.contents) for release in self.signed}
        )
        self.rig.engine = self.engine
        for release in self.signed:
            self.rig.store.add(release)
        self.agent: Agent = self.rig.agent()
        self.generation = 0
        self.boots = 1
        self.pending: list[tuple[str, int]] = []
        self.engine.in_the_midst = self._go_on

    def teardown(self) -> None:
        self.disk.is_full = False
        self.agent.fetcher.close()
        shutil.rmtree(self.root)

    @initialize()
    def all_are_loaded(self) -> None:
        for index in range(VERSIONS):
            self.load_it(index, [])

    @rule(index=which, others=meanwhile)
    def load_it(self, index: int, others: list[tuple[str, int]]) -> None:
        self.pending = list(others)
        warm(self.agent, parse_warm(self.signed[index].warm(generation=self._next())))

    @rule(index=which, to=st.sampled_from(["disk", "absent"]), others=meanwhile)
    def evict_it(self, index: int, to: str, others: list[tuple[str, int]]) -> None:
        self.pending = list(others)
        self._evict(index, to)

    @rule(others=meanwhile)
    def it_tidies(self, others: list[tuple[str, int]]) -> None:
        self.pending = list(others)
        sweep(self.agent)
        keep_marks(self.agent, frozenset(self.engine.roots))

    @rule(unknown=st.lists(which, unique=True), others=meanwhile)
    def it_beats(self, unknown: list[int], others: list[tuple[str, int]]) -> None:
        self.pending = list(others)
        self.rig.web.unknown = [self.signed[index].name for index in unknown]
        Heartbeat(self.agent).beat()
        self.rig.web.unknown = []

    @rule(index=which)
    def somebody_asks(self, index: int) -> None:
        if (name := self.signed[index].name) in self.engine.roots:
            self.engine.request(name)

    @rule(index=which)
    def a_request_ends_after_the_unload(self, index: int) -> None:
        if (name := self.signed[index].name) in self.engine.running:
            self.engine.end_late(name)

    @rule(away=st.booleans())
    def the_engine_does_not_answer_for_a_while(self, away: bool) -> None:
        self.engine.away = away

    @rule(full=st.booleans())
    def the_disk_fills_up_or_not(self, full: bool) -> None:
        self.disk.is_full = full

    @rule()
    def the_engine_restarts(self) -> None:
        self.boots += 1
        self.engine.restart(f"boot-{self.boots}")

    @rule()
    def the_agent_restarts(self) -> None:
        self.agent.fetcher.close()
        self.agent = self.rig.agent()

    @rule(budget=st.sampled_from([None, 1, 60, 100]), ttl_s=st.sampled_from([None, 0.0, GRACE_S]))
    def web_sets_other_limits(self, budget: int | None, ttl_s: float | None) -> None:
        self.rig.limits = Limits(disk_bytes=budget, disk_ttl_s=ttl_s, high_water=0.9, low_water=0.5)
        self.agent.limits.now = self.rig.limits

    @rule(seconds=st.sampled_from([0.5, GRACE_S - 1, GRACE_S + 1]))
    def time_passes(self, seconds: float) -> None:
        self.rig.clock.time += seconds

    @invariant()
    def what_the_engine_may_read_is_there(self) -> None:
        now = self.rig.clock()
        late = {name for name, (_, unloaded) in self.engine.running.items() if now < unloaded + GRACE_S}
        for name in {*self.engine.roots, *late}:
            folder = self.root / "versions" / name
            assert {path: (folder / path).read_bytes() for path in self.engine.contents[name]} == (
                self.engine.contents[name]
            )

    def _next(self) -> int:
        self.generation += 1
        return self.generation

    def _evict(self, index: int, to: str) -> None:
        evict(self.agent, parse_evict(self.signed[index].evict(generation=self._next(), to=to)))

    def _go_on(self) -> None:
        """What another thread does meanwhile: one thing in each call of the engine."""
        if self.pending:
            what, index = self.pending.pop()
            self._work(what, self.signed[index])

    def _work(self, what: str, release: Release) -> None:
        if what in {"load", "fetch", "evict"} and release.name in self.agent.lanes._lanes:
            return
        if what == "load" and self.agent.turn._inside:
            return
        # It would wait for who downloads the files that all versions share; here that is who called it.
        if what in {"load", "fetch"} and self.agent.cache._downloading:
            return
        works: dict[str, Callable[[], object]] = {
            "sweep": lambda: sweep(self.agent),
            "marks": lambda: keep_marks(self.agent, frozenset()),
            "room": lambda: make_room(self.agent, 10**9),
            "scrub": Scrub(self.agent, wait=lambda _: False).round,
            "beat": Heartbeat(self.agent).beat,
            "health": Health(self.agent).check,
            "load": lambda: warm(self.agent, parse_warm(release.warm(generation=self._next()))),
            "fetch": lambda: fetch(self.agent, parse_fetch(release.fetch(generation=self._next()))),
            "evict": lambda: evict(self.agent, parse_evict(release.evict(generation=self._next()))),
        }
        works[what]()


@pytest.mark.parametrize("examples", [20, pytest.param(300, marks=pytest.mark.e2e)])
def test_a_file_that_an_engine_may_read_is_never_deleted(monkeypatch: pytest.MonkeyPatch, examples: int) -> None:
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    EngineReads.disk.install(monkeypatch)
    run_machine(EngineReads, settings=settings(max_examples=examples, stateful_step_count=40))
