"""Reconciling against a node that loses, repeats and delays messages, restarts, fails and lies; in a simulated time.

What decides is the real code: ``reconcile.decide``, the reading of outcomes and reports, the moves allowed and the
order of generations on the node. Only the rows, the queue and the node are models.
"""

import sys
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from cachecontrol import drift
from cachecontrol.lifecycle import Leave, NodeSnapshot, NodeTiming, decide_node
from cachecontrol.reconcile import (
    Decision,
    Forget,
    Send,
    SendEvict,
    SendFetch,
    SendWarm,
    Snapshot,
    StartDrain,
    Timing,
    Wait,
    Withdraw,
    decide,
    is_settled,
)
from cachecontrol.services import outcomes, reports, wishes
from cachecontrol.states import OBSERVED_AFTER, Desired, ErrorClass, NodeStatus, Observed, Outcome
from cachecontrol.transitions import _FRESH, once_more
from tests.property.residencies import BEGIN, CLOCK, Act, Clock, Look, Message, Node, Row, Version
from workers.node.ledger import Entry, Order, _compare

TIMING = Timing(command_deadline=timedelta(seconds=60), drain=timedelta(seconds=5), routing_stop=timedelta(seconds=0.3))
NODE_TIMING = NodeTiming(timeout=timedelta(seconds=15), drain=timedelta(seconds=5), recycle=timedelta(minutes=10))
PASSES = 6
COUNT = 2
AFTER_ALL_STEPS = 3
SELDOM = st.sampled_from([False] * 7 + [True])
Ending = Literal["loaded", "lie", "permanent", "capacity", "transient", "refused", "left"]

which = st.integers(0, COUNT - 1)


class Reconciling(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        CLOCK.time = BEGIN
        self.versions = [Version(f"lk-{number}") for number in range(COUNT)]
        self.node = Node()
        self.status, self.healthy, self.last_seen = NodeStatus.NEW, False, BEGIN
        self.queue: list[Message] = []
        self.the_agent_looks(reported_now=True)

    # --- wishes, as services/wishes.py writes them

    @rule(index=which, what=st.sampled_from(["warm"] * 4 + ["demote"] * 3 + ["keep"] * 2 + ["evict"] * 2 + ["revoke"]))
    def somebody_wishes(self, index: int, what: str) -> None:
        version = self.versions[index]
        if what == "warm":
            self._want(version)
        elif what == "keep":
            self._want_on_disk(version)
        elif what == "demote":
            self._lower(version.row, {Desired.GPU}, Desired.DISK)
        elif what == "evict":
            self._lower(version.row, {Desired.GPU, Desired.DISK}, Desired.ABSENT)
        else:
            version.revoked = True
        self.reconcile(index)

    @staticmethod
    def _want(version: Version) -> None:
        row = version.row
        if version.revoked:
            return
        if row is None:
            version.row = Row(SimpleNamespace(engine_name=version.engine_name), CLOCK.now())
        elif row.desired != Desired.GPU:
            row.set({**_FRESH, "desired": Desired.GPU.value, "generation": row.generation + 1})
        elif row.observed == Observed.FAILED:
            row.set({**once_more(row), **wishes._A_NEW_TRY})  # type: ignore[arg-type]  # a row that has its fields

    @staticmethod
    def _want_on_disk(version: Version) -> None:
        row = version.row
        if version.revoked:
            return
        if row is None:
            known = SimpleNamespace(engine_name=version.engine_name)
            version.row = Row(known, CLOCK.now(), desired=Desired.DISK.value)
        elif row.desired == Desired.ABSENT:
            row.set({**_FRESH, "desired": Desired.DISK.value, "generation": row.generation + 1})
        elif row.desired == Desired.DISK and row.observed == Observed.FAILED:
            row.set({**once_more(row), **wishes._A_NEW_TRY})  # type: ignore[arg-type]

    @staticmethod
    def _lower(row: Row | None, higher: set[Desired], to: Desired) -> None:
        if row is not None and row.desired in higher:
            row.set({**_FRESH, "desired": to.value, "generation": row.generation + 1})

    # --- control

    @rule(seconds=st.sampled_from([1, 2, 4, 6, 20, 61]))
    def time_passes(self, seconds: int) -> None:
        CLOCK.time += timedelta(seconds=seconds)
        node = NodeSnapshot(status=self.status, last_seen_at=self.last_seen)
        if not isinstance(decide_node(node, CLOCK.now(), timing=NODE_TIMING), Leave):
            self.status = NodeStatus.LOST

    @rule(index=which, broker_away=st.sampled_from([False, False, True]))
    def reconcile(self, index: int, *, broker_away: bool = False) -> None:
        for _pass in range(PASSES):
            row = self.versions[index].row
            if row is None:
                return
            decision = decide(self._snapshot(index, row), CLOCK.now(), timing=TIMING)
            self._apply(index, row, decision, broker_away=broker_away)
            if isinstance(decision, Wait | Forget | Send):
                return
        pytest.fail("reconciling doesn't come to rest")

    def _snapshot(self, index: int, row: Row) -> Snapshot:
        version = self.versions[index]
        return Snapshot(
            desired=Desired(row.desired),
            observed=Observed(row.observed),
            generation=row.generation,
            acted_generation=row.acted_generation,
            command_sent_at=row.command_sent_at,
            retry_at=row.retry_at,
            drain_until=row.drain_until,
            state_changed_at=row.state_changed_at,
            is_servable=not version.revoked,
            is_revoked=version.revoked,
            fits_node=True,
            node_status=self.status,
            engine_healthy=self.healthy,
            is_recycling=False,
            watches_use=self.node.watches_use,
        )

    def _apply(self, index: int, row: Row, decision: Decision, *, broker_away: bool) -> None:
        version = self.versions[index]
        match decision:
            case Withdraw():
                row.set({**_FRESH, "desired": Desired.ABSENT.value, "generation": row.generation + 1})
            case StartDrain(until):
                row.move(Observed.DRAINING, {"drain_until": until})
            case SendWarm():
                assert row.desired == Desired.GPU
                assert not version.revoked, "a revoked version was asked to be warm"
                self._send(index, row, "warm", broker_away=broker_away)
            case SendFetch():
                assert row.desired == Desired.DISK
                assert not version.revoked, "a revoked version was asked to be fetched"
                self._send(index, row, "fetch", broker_away=broker_away)
            case SendEvict(keeps_files):
                assert row.desired == (Desired.DISK if keeps_files else Desired.ABSENT)
                assert row.observed not in {Observed.LOADED, Observed.LOADING}, "unloaded without a drain"
                is_over = row.drain_until is None or row.drain_until <= CLOCK.now()
                assert is_over or version.revoked, "unloaded before the drain was over"
                self._send(index, row, "demote" if keeps_files else "evict", broker_away=broker_away)
            case Forget():
                assert version.revoked
                version.row = None

    def _send(self, index: int, row: Row, act: Act, *, broker_away: bool) -> None:
        row.set({"command_sent_at": CLOCK.now(), "retry_at": None})
        if broker_away:
            row.set({"command_sent_at": None, "retry_at": CLOCK.now() + outcomes.pause_after(1)})
            return
        version = self.versions[index]
        known = version.wishes.setdefault(row.generation, act)
        assert known == act, "one generation asks for two things"
        earlier = [at for generation, at in version.sent if generation == row.generation]
        assert all(at + TIMING.command_deadline < CLOCK.now() for at in earlier), "two commands are on their way"
        version.sent.append((row.generation, CLOCK.now()))
        self.queue.append(Message(index, row.generation, act))

    # --- the queue

    @rule()
    def all_messages_arrive(self) -> None:
        while self.queue:
            self._arrive(0, "loaded", again=False)
        while self.node.outbox:
            self.an_outcome_arrives(again=False)

    @precondition(lambda self: self.queue)
    @rule(place=st.integers(0, 3))
    def a_command_is_lost(self, place: int) -> None:
        del self.queue[place % len(self.queue)]

    @precondition(lambda self: self.queue)
    @rule(place=st.integers(0, 3), again=st.booleans())
    def a_command_arrives(self, place: int, *, again: bool) -> None:
        self._arrive(place, "loaded", again=again)

    @precondition(lambda self: self.queue)
    @rule(
        place=st.integers(0, 3),
        ending=st.sampled_from(["left", "lie", "permanent", "capacity", "transient", "refused", "left"]),
        again=st.booleans(),
    )
    def a_command_goes_wrong(self, place: int, ending: Ending, *, again: bool) -> None:
        self._arrive(place, ending, again=again)

    @precondition(lambda self: self.queue)
    @rule(place=st.integers(0, 3), after=st.integers(0, AFTER_ALL_STEPS))
    def the_agent_is_killed_in_the_midst_of_a_command(self, place: int, after: int) -> None:
        self._arrive(place, "loaded", again=True, killed_after=after)

    def _arrive(self, place: int, ending: Ending, *, again: bool, killed_after: int | None = None) -> None:
        message = self.queue[place % len(self.queue)]
        if not again:
            self.queue.remove(message)
        if message.act in {"warm", "fetch"}:
            self._bring(message, ending, killed_after)
        else:
            self._evict(message, killed_after)

    # --- the node

    def _bring(self, message: Message, ending: Ending, killed_after: int | None) -> None:
        node, index = self.node, message.index
        order = _compare(node.ledger.get(index), message.generation, message.act)
        if order is Order.STALE:
            return
        self._accept(message)
        known = node.ended.get((index, message.generation))
        if order is Order.AGAIN and known and self._still_true(index, known):
            self._say(message, known[0], known[1])
            return
        for step in (Outcome.FETCHING, Outcome.ON_DISK, Outcome.LOADING)[:killed_after]:
            if step is Outcome.ON_DISK and ending in {"transient", "capacity"}:
                self._warm_fails(message, ending)
                return
            if step is Outcome.ON_DISK:
                node.on_disk.add(index)
            if step is Outcome.ON_DISK and message.act == "fetch":
                self._end_of_fetch(message, ending)
                return
            self._say(message, step)
        if killed_after in {None, AFTER_ALL_STEPS} and message.act == "warm":
            self._load(message, ending, killed=killed_after is not None)

    def _end_of_fetch(self, message: Message, ending: Ending) -> None:
        if ending in {"permanent", "refused"}:
            self._end(message, Outcome.FAILED, ErrorClass(ending))
        else:
            self._end(message, Outcome.ON_DISK)

    def _load(self, message: Message, ending: Ending, *, killed: bool) -> None:
        if self.node.away:
            self._warm_fails(message, "transient")
            return
        if ending in {"permanent", "refused"}:
            self._warm_fails(message, ending)
            return
        if ending != "lie":
            self.node.loaded.add(message.index)
        if ending == "left":
            self._end(message, Outcome.FAILED, ErrorClass.PERMANENT)
        elif not killed:
            self._end(message, Outcome.LOADED)

    def _accept(self, message: Message) -> None:
        known = self.node.ledger.get(message.index)
        assert known is None or known.generation <= message.generation, "a stale command was obeyed"
        self.node.ledger[message.index] = Entry(message.generation, message.act)
        self.node.accepted += 1

    def _warm_fails(self, message: Message, ending: Ending) -> None:
        if not self.node.away and message.act == "warm":
            self.node.loaded.discard(message.index)
        self._end(message, Outcome.FAILED, ErrorClass(ending))

    def _still_true(self, index: int, known: tuple[Outcome, ErrorClass | None, int]) -> bool:
        outcome, error_class, boot = known
        if error_class in {ErrorClass.TRANSIENT, ErrorClass.CAPACITY}:
            return False
        if outcome is Outcome.ON_DISK:
            return index in self.node.on_disk
        return outcome is not Outcome.LOADED or (index in self.node.loaded and boot == self.node.boot)

    def _evict(self, message: Message, killed_after: int | None) -> None:
        node, index = self.node, message.index
        if _compare(node.ledger.get(index), message.generation, message.act) is Order.STALE:
            return
        self._accept(message)
        if node.away:
            self._end(message, Outcome.FAILED, ErrorClass.TRANSIENT)
            return
        assert self._may_be_unloaded(message), "a version was unloaded while it is wanted"
        node.loaded.discard(index)
        if killed_after is not None:
            return
        if message.act == "evict":
            node.on_disk.discard(index)
        self._end(message, Outcome.ON_DISK if index in node.on_disk else Outcome.EVICTED)

    def _may_be_unloaded(self, message: Message) -> bool:
        """An evict that is newer than all the node has seen is of a generation in which the version wasn't wanted."""
        return self.versions[message.index].wishes[message.generation] in {"evict", "demote"}

    def _end(self, message: Message, outcome: Outcome, error_class: ErrorClass | None = None) -> None:
        self._say(message, outcome, error_class)
        self.node.ended[message.index, message.generation] = (outcome, error_class, self.node.boot)

    def _say(self, message: Message, outcome: Outcome, error_class: ErrorClass | None = None) -> None:
        said = outcomes.CommandOutcome(
            engine_name=self.versions[message.index].engine_name,
            generation=message.generation,
            outcome=outcome,
            error_class=error_class,
        )
        self.node.outbox.append((message.index, said))

    @rule(really=SELDOM)
    def the_engine_is_another_that_tells_what_is_in_use(self, *, really: bool) -> None:
        self.node.watches_use = really

    @rule(index=which)
    def files_vanish_from_the_disk(self, index: int) -> None:
        self.node.on_disk.discard(index)

    @rule(event=st.sampled_from(["restarts", "is away", "is back", "is back", "drops 0", "drops 1"]))
    def the_engine(self, event: str) -> None:
        if event == "restarts":
            self.node.boot += 1
            self.node.loaded.clear()
        elif event.startswith("drops"):
            self.node.loaded.discard(int(event[-1]))
        self.node.away = event == "is away"

    # --- what the node tells

    @precondition(lambda self: self.node.outbox)
    @rule(again=st.booleans())
    def an_outcome_arrives(self, again: bool) -> None:
        index, said = self.node.outbox[0]
        if not again:
            del self.node.outbox[0]
        row = self.versions[index].row
        if row is None or not outcomes._is_news(row, said):  # type: ignore[arg-type]
            return
        assert said.generation == row.generation, "word of another generation was taken for news"
        ends = outcomes._is_end(row, said)  # type: ignore[arg-type]
        facts = outcomes._facts_of_end(row, said) if ends else {}  # type: ignore[arg-type]
        to = OBSERVED_AFTER[said.outcome]
        if to == row.observed:
            row.set(facts)
        else:
            row.move(to, facts)

    @rule(reported_now=st.booleans())
    def the_agent_looks(self, *, reported_now: bool) -> None:
        self._look()
        if reported_now:
            self.the_look_is_reported()

    def _look(self) -> None:
        node = self.node
        names = [version.engine_name for version in self.versions]
        body = drift.NodeReport(
            boot_id=str(node.boot),
            engine_healthy=not node.away,
            loaded=frozenset(names[index] for index in node.loaded) if not node.away else frozenset(),
            on_disk=frozenset(names[index] for index in node.on_disk),
        )
        node.look = Look(body, node.accepted)

    @precondition(lambda self: self.node.look)
    @rule()
    def the_look_is_reported(self) -> None:
        look, self.node.look = self.node.look, None
        assert look is not None
        self.status, self.healthy, self.last_seen = NodeStatus.UP, look.body.engine_healthy, CLOCK.now()
        if not self.healthy:
            return
        for version in self.versions:
            if version.row is not None:
                self._record_loss(version.row, look.body)
        rows = [version.row for version in self.versions if version.row is not None]
        known = {row.version.engine_name for row in rows if drift.may_be_loaded(row)}
        if self.node.accepted == look.accepted and not self.node.away:
            self._unload_unknown(look.body.loaded - known)

    def _record_loss(self, row: Row, body: drift.NodeReport) -> None:
        to = drift.to_where(row.version.engine_name, row, body, CLOCK.now())
        if to is None:
            return
        row.move(to, reports._asked_again(row))  # type: ignore[arg-type]

    def _unload_unknown(self, names: frozenset[str]) -> None:
        for index, version in enumerate(self.versions):
            if version.engine_name in names:
                row = version.row
                over = row is None or row.desired != Desired.GPU or self._is_settled(row)
                assert over, "web had a version unloaded while it was on its way"
                self.node.loaded.discard(index)

    # --- what always holds

    @invariant()
    def generations_never_go_back(self) -> None:
        for version in self.versions:
            if version.row is not None:
                assert version.row.generation >= version.last_generation
                assert version.row.acted_generation <= version.row.generation
                version.last_generation = version.row.generation

    @invariant()
    def what_was_revoked_and_looked_at_is_not_wanted(self) -> None:
        for index, version in enumerate(self.versions):
            if version.revoked:
                self.reconcile(index)
                assert version.row is None or version.row.desired == Desired.ABSENT

    # --- and in the end

    def teardown(self) -> None:
        if sys.exc_info()[0] is None:
            self._faults_stop_and_time_passes()

    @rule(really=SELDOM)
    def it_is_quiet_for_a_while(self, *, really: bool) -> None:
        if really:
            self._faults_stop_and_time_passes()

    def _faults_stop_and_time_passes(self) -> None:
        """Observed becomes what is desired, whatever happened before."""
        self.node.away = False
        for _round in range(60):
            self._quiet_round()
            if all(self._is_in_step(index) for index in range(COUNT)) and not self.queue and not self.node.outbox:
                break
        for index in range(COUNT):
            assert self._is_in_step(index), f"never in step: {self.versions[index]}, {self.node}"

    def _quiet_round(self) -> None:
        CLOCK.time += timedelta(seconds=4)
        for index in range(COUNT):
            self.reconcile(index)
        self.all_messages_arrive()
        self.the_agent_looks(reported_now=True)

    def _is_in_step(self, index: int) -> bool:
        version, loaded = self.versions[index], index in self.node.loaded
        row = version.row
        if row is None:
            return not loaded
        if version.revoked or not self._is_settled(row):
            return False
        if row.desired == Desired.GPU:
            # A failure for good stays one until somebody wants the version again, and then nothing is left behind.
            return loaded == (row.observed == Observed.LOADED)
        is_on_disk = index in self.node.on_disk
        if row.desired == Desired.DISK:
            # What was refused may have left files behind; they are nobody's harm.
            return not loaded and (is_on_disk or row.observed != Observed.ON_DISK)
        return not loaded and not is_on_disk

    @staticmethod
    def _is_settled(row: Row) -> bool:
        return is_settled(
            desired=Desired(row.desired),
            observed=Observed(row.observed),
            generation=row.generation,
            acted_generation=row.acted_generation,
        )


@pytest.fixture
def simulated_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    monkeypatch.setattr(outcomes, "timezone", CLOCK)
    yield CLOCK
    CLOCK.time = BEGIN


@pytest.mark.usefixtures("simulated_time")
@pytest.mark.parametrize("examples", [80, pytest.param(800, marks=pytest.mark.e2e)])
def test_a_node_comes_into_step_whatever_happens_on_the_way(examples: int) -> None:
    run_state_machine_as_test(Reconciling, settings=settings(max_examples=examples, stateful_step_count=60))
