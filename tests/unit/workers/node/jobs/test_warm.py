import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import sleep
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.unit.workers.node.kit import NAN, Release, Rig
from workers.node.agent import Agent
from workers.node.commands import WantedFile, parse_evict, parse_fetch, parse_warm
from workers.node.disk.janitor import sweep
from workers.node.engines.capabilities import CAPABILITIES
from workers.node.errors import EngineFailedError, EngineFullError, EngineRefusedError, GrantNotNowError
from workers.node.jobs.evict import evict
from workers.node.jobs.fetch import fetch
from workers.node.jobs.turn import Turn
from workers.node.jobs.warm import warm
from workers.node.limits import Limits
from workers.node.reports import Outcome
from workers.node.verify import Verifier

if TYPE_CHECKING:
    from workers.node.disk.fetch import Fetcher


def run(agent: Agent, release: Release, *, generation: int = 1) -> Outcome:
    outcome = warm(agent, parse_warm(release.warm(generation=generation)))
    assert outcome is not None
    return outcome


def test_a_version_is_fetched_verified_loaded_probed_and_each_step_told(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    outcome = run(agent, release)
    assert (outcome.outcome, outcome.boot_id, set(outcome.timings_ms)) == (
        "loaded",
        "boot-1",
        {"fetch", "verify", "wait", "load", "probe"},
    )
    assert rig.told(agent) == ["fetching", "on_disk", "loading", "loaded"]
    folder = agent.cache.folder(release.name)
    assert rig.engine.roots == {release.name: str(folder)}
    assert json.loads((folder / "release.intoto.json").read_text()) == json.loads(release.attestation)


def test_a_version_on_disk_is_not_fetched_again(rig: Rig) -> None:
    release = rig.release()
    run(rig.agent(), release)
    rig.engine.restart("boot-2")
    rig.store.asked.clear()
    outcome = run(rig.agent(), release, generation=2)
    assert (outcome.outcome, outcome.boot_id) == ("loaded", "boot-2")
    assert rig.store.asked == []
    assert rig.told(rig.agent())[-3:] == ["on_disk", "loading", "loaded"]


def test_a_redelivered_command_is_told_again_without_an_act(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    first = run(agent, release)
    calls = len(rig.engine.calls)
    assert run(agent, release) == first
    assert len(rig.engine.calls) == calls
    assert rig.told(agent)[-2:] == ["loaded", "loaded"]


def test_a_redelivered_command_is_done_again_when_the_engine_has_restarted(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    run(agent, release)
    rig.engine.restart("boot-2")
    assert run(agent, release).boot_id == "boot-2"
    assert release.name in rig.engine.roots


def test_a_command_cut_short_by_a_kill_is_finished_by_its_redelivery(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    agent.ledger.accept(release.name, generation=1, act="warm")
    agent.cache.partial_path("0" * 64).write_bytes(b"half")
    assert run(rig.agent(), release).outcome == "loaded"


def test_a_stale_command_is_left_alone(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    run(agent, release, generation=5)
    assert warm(agent, parse_warm(release.warm(generation=4))) is None
    assert rig.told(agent)[-1] == "loaded"


def test_a_permanent_failure_is_only_told_again(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    rig.engine.load_error = EngineRefusedError("HTTP 500: rank 64")
    assert run(agent, release).error_class == "refused"
    rig.engine.load_error = None
    assert run(agent, release).outcome == "failed"
    assert run(agent, release, generation=2).outcome == "loaded"


def test_a_transient_failure_is_tried_again_by_the_same_command(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    rig.engine.away = True
    assert run(agent, release).error_class == "transient"
    rig.engine.away = False
    assert run(agent, release).outcome == "loaded"


def test_a_bad_grant_touches_nothing(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    outcome = warm(agent, parse_warm(release.warm(generation=9, granted={"node": "edge-2"})))
    assert outcome is not None
    assert (outcome.outcome, outcome.error_class) == ("failed", "refused")
    assert rig.store.asked == []
    assert rig.engine.calls == []
    assert agent.cache.names() == ()
    # Nor can an unsigned generation keep out the real command.
    assert run(agent, release, generation=2).outcome == "loaded"


def test_a_warm_whose_reference_was_dropped_or_forged_taints_nothing_and_the_real_one_still_loads(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    real = release.warm(probe_reference={"prompt": "a text", "base": [-1.0, -2.0], "adapter": [-1.5, -2.25]})
    forged = {"prompt": "a text", "base": [-1.0, -2.0], "adapter": [-9.0, -9.0]}
    for reference in (None, forged):
        outcome = warm(agent, parse_warm({**real, "probe_reference": reference}))
        assert outcome is not None
        assert (outcome.outcome, outcome.error_class) == ("failed", "refused")
    assert rig.engine.calls == []
    assert agent.taint.of("boot-1") is None
    loaded = warm(agent, parse_warm(real))
    assert loaded is not None
    assert loaded.outcome == "loaded"


def test_a_store_that_gives_other_bytes_leaves_nothing_behind(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    for key, data in rig.store.objects.items():
        rig.store.objects[key] = data[:-1] + b"\x07"
    outcome = run(agent, release)
    assert (outcome.error_class, "wrong_bytes" in outcome.message) == ("permanent", True)
    assert list((rig.root / "partial").iterdir()) == []
    assert list((rig.root / "blobs").iterdir()) == []


def test_a_full_budget_is_refused_before_the_download(rig: Rig) -> None:
    rig.limits = Limits(disk_bytes=100)
    outcome = run(rig.agent(), rig.release())
    assert outcome.error_class == "capacity"
    assert "of the budget of 100 are left" in outcome.message
    assert rig.store.asked == []


def test_a_file_corrupted_on_disk_is_fetched_again_before_the_load(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    run(agent, release)
    weights = agent.cache.folder(release.name) / "adapter_model.safetensors"
    weights.chmod(0o644)
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x07")
    rig.engine.restart("boot-2")
    rig.store.asked.clear()
    assert run(agent, release, generation=2).outcome == "loaded"
    assert len(rig.store.asked) == 1
    assert weights.read_bytes() == release.contents["adapter_model.safetensors"]


def test_a_corrupted_file_is_never_loaded_when_the_store_is_down(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    run(agent, release)
    weights = agent.cache.folder(release.name) / "adapter_model.safetensors"
    weights.chmod(0o644)
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x07")
    rig.engine.restart("boot-2")
    rig.store.status = 403
    assert run(agent, release, generation=2).error_class == "transient"
    assert rig.engine.roots == {}


@pytest.mark.parametrize(
    ("reads", "error_class"), [((-1.0, -2.0), "refused"), (NAN, "permanent")], ids=["like the base", "not a number"]
)
def test_a_failed_probe_unloads_and_lets_the_files_go(rig: Rig, reads: tuple[float, ...], error_class: str) -> None:
    release, agent = rig.release(), rig.agent()
    rig.engine.reads[release.name] = reads
    outcome = run(agent, release)
    assert (outcome.outcome, outcome.error_class) == ("failed", error_class)
    assert rig.engine.roots == {}
    assert agent.tombstones.names() == (release.name,)


def test_numbers_that_are_none_mark_the_engine_as_poisoned(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    rig.engine.reads[release.name] = NAN
    run(agent, release)
    assert agent.taint.poison("boot-1") is not None


def test_an_adapter_without_effect_is_not_blamed_on_the_engine(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    rig.engine.reads[release.name] = (-1.0, -2.0)
    run(agent, release)
    assert agent.taint.of("boot-1") is None


def test_a_load_that_failed_midway_marks_the_engine_but_not_as_poisoned(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    rig.engine.load_error = EngineFailedError("HTTP 500: The size of tensor a must match")
    outcome = run(agent, release)
    assert (outcome.error_class, outcome.code, outcome.boot_id) == ("permanent", "engine_failed", "boot-1")
    assert agent.taint.of("boot-1") is not None
    assert agent.taint.poison("boot-1") is None


def test_a_failure_is_told_with_the_life_of_the_engine_in_which_it_happened_and_only_then(rig: Rig) -> None:
    agent = rig.agent()
    bad, absent = rig.release(), rig.release(version="2026-07-04.2", seed=2)
    rig.engine.load_error = EngineFailedError("HTTP 500: a size is wrong")
    run(agent, bad)
    agent.limits.now = Limits(disk_bytes=1)
    run(agent, absent)
    rig.told(agent)
    failures = {body["code"]: body.get("boot_id") for body in rig.web.outcomes if body["outcome"] == "failed"}
    assert failures == {"engine_failed": "boot-1", "disk_full": None}


def test_nothing_is_loaded_into_a_poisoned_engine_until_it_restarts(rig: Rig) -> None:
    bad, good, agent = rig.release(), rig.release(version="2026-07-04.2", seed=2), rig.agent()
    rig.engine.reads[bad.name] = NAN
    run(agent, bad)
    outcome = run(agent, good)
    assert (outcome.error_class, "must be restarted" in outcome.message) == ("transient", True)
    rig.engine.restart("boot-2")
    assert run(agent, good).outcome == "loaded"


def test_a_full_engine_is_said_to_be_full(rig: Rig) -> None:
    rig.engine.load_error = EngineFullError("no free slots")
    assert run(rig.agent(), rig.release()).error_class == "capacity"


@pytest.mark.parametrize(("kind", "pinned"), [("sglang", True), ("vllm", False)])
def test_a_pin_is_asked_of_an_engine_that_has_pins(rig: Rig, kind: str, pinned: bool) -> None:
    rig.engine.capabilities = CAPABILITIES[kind]
    release, agent = rig.release(), rig.agent()
    warm(agent, parse_warm(release.warm(pinned=True)))
    assert (release.name in rig.engine.pinned) == pinned


def test_a_version_is_loaded_without_its_pin_when_no_pin_is_left(rig: Rig) -> None:
    rig.engine.capabilities = CAPABILITIES["sglang"]
    rig.engine.pin_error = EngineFullError("It is not allowed to pin all slots")
    release, agent = rig.release(), rig.agent()
    outcome = warm(agent, parse_warm(release.warm(pinned=True)))
    assert outcome is not None
    assert (outcome.outcome, rig.engine.pinned) == ("loaded", set())


def test_an_engine_that_is_not_well_gets_no_load(rig: Rig) -> None:
    rig.engine.healthy = False
    assert run(rig.agent(), rig.release()).error_class == "transient"
    assert rig.engine.calls == [("unload", rig.release().name)]


def test_files_of_a_failed_load_go_after_the_grace(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    rig.engine.load_error = EngineRefusedError("HTTP 500: rank 64")
    run(agent, release)
    assert sweep(agent) == ()
    rig.clock.time += 11
    assert sweep(agent) == (release.name,)
    assert agent.cache.names() == ()


def test_a_version_warmed_again_within_the_grace_keeps_its_files(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    run(agent, release)
    evict(agent, parse_evict(release.evict(generation=2)))
    assert run(agent, release, generation=3).outcome == "loaded"
    rig.clock.time += 1000
    assert sweep(agent) == ()
    assert agent.cache.names() == (release.name,)


def test_an_evict_overtakes_a_warm_that_was_redelivered(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    evict(agent, parse_evict(release.evict(generation=2)))
    assert warm(agent, parse_warm(release.warm(generation=1))) is None
    assert rig.engine.roots == {}


def test_a_name_that_the_engine_has_from_another_folder_is_loaded_anew(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    rig.engine.roots[release.name] = "/elsewhere"
    original = rig.engine.load

    def load(*, name: str, path: Path, pinned: bool = False) -> None:
        if name in rig.engine.roots:
            raise EngineRefusedError("the engine has it from another folder")
        original(name=name, path=path, pinned=pinned)

    rig.engine.load = load  # type: ignore[method-assign]
    assert run(agent, release).outcome == "loaded"
    assert rig.engine.roots == {release.name: str(agent.cache.folder(release.name))}


def test_a_grant_that_ends_during_the_download_loads_nothing(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    agent = replace(agent, verifier=cast("Verifier", Expiring(agent.verifier)))
    outcome = run(agent, release)
    assert (outcome.error_class, "grant_not_now" in outcome.message) == ("transient", True)
    assert ("load", release.name) not in rig.engine.calls
    assert agent.cache.names() == (release.name,)


class Expiring:
    """Grants are over once the files are there."""

    def __init__(self, verifier: Verifier) -> None:
        self.grant, self.folder = verifier.grant, verifier.folder

    def require_current(self, _: object) -> None:
        raise GrantNotNowError("the grant expired")


def test_files_stay_after_a_failure_that_another_try_may_mend(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    rig.engine.load_error = EngineFullError("no free slots")
    run(agent, release)
    rig.clock.time += 1000
    assert sweep(agent) == ()
    assert agent.cache.names() == (release.name,)


def test_too_many_loads_at_once_are_refused_at_once(rig: Rig) -> None:
    agent = rig.agent()
    releases = [rig.release(version=f"v{number}", seed=number) for number in range(4)]
    with ThreadPoolExecutor(2) as pool, ExitStack() as another:
        another.enter_context(agent.turn.take())
        waiting = [pool.submit(run, agent, release) for release in releases[:2]]
        while len(agent.turn._waiting) < 2:
            sleep(0.001)
        refused = run(agent, releases[2])
        assert (refused.error_class, "queue_full" in refused.message) == ("capacity", True)
        assert ("load", releases[2].name) not in rig.engine.calls
        another.close()
        assert [future.result(5).outcome for future in waiting] == ["loaded", "loaded"]


def test_one_load_at_a_time_however_many_commands_come(rig: Rig) -> None:
    agent = replace(rig.agent(), turn=Turn(width=1, queue=16))
    inside, most = [0], [0]
    original = rig.engine.load

    def load(*, name: str, path: Path, pinned: bool = False) -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        sleep(0.002)
        original(name=name, path=path, pinned=pinned)
        inside[0] -= 1

    rig.engine.load = load  # type: ignore[method-assign]
    releases = [rig.release(version=f"v{number}", seed=number) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda release: run(agent, release).outcome, releases))
    assert outcomes == ["loaded"] * 8
    assert most == [1]


def test_an_evict_that_comes_during_the_download_ends_it(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    asked, go_on = Event(), Event()
    store = rig.agent().fetcher

    class Slow:
        def fetch(self, wanted: Any, *, is_void: Callable[[], bool]) -> None:
            asked.set()
            go_on.wait(5)
            while not is_void():
                sleep(0.001)
            store.fetch(wanted, is_void=is_void)

    agent = replace(agent, fetcher=cast("Fetcher", Slow()))
    with ThreadPoolExecutor(1) as pool:
        warming = pool.submit(warm, agent, parse_warm(release.warm()))
        assert asked.wait(5)
        go_on.set()
        evicted = evict(agent, parse_evict(release.evict(generation=2)))
        assert warming.result(5) is None
    assert evicted is not None
    assert evicted.outcome == "evicted"
    assert ("load", release.name) not in rig.engine.calls
    assert rig.told(agent)[-1] == "evicted"
    assert rig.told(agent).count("failed") == 0


def test_a_command_that_is_delivered_twice_at_once_is_done_once(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda _: warm(agent, parse_warm(release.warm())), range(4)))
    assert "loaded" in {outcome.outcome for outcome in outcomes if outcome}
    assert rig.engine.calls.count(("load", release.name)) == 1


def test_what_was_downloaded_is_counted(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    assert run(agent, release).fetched_bytes == sum(map(len, release.contents.values()))
    rig.engine.restart("boot-2")
    assert run(agent, release, generation=2).fetched_bytes == 0


def test_files_that_the_engine_had_under_a_wrong_name_are_kept_for_the_grace(rig: Rig) -> None:
    release, other, agent = rig.release(), rig.release(version="v2", seed=2), rig.agent()
    fetch(agent, parse_fetch(other.fetch()))
    rig.engine.roots[release.name] = str(agent.cache.folder(other.name))
    load = rig.engine.load

    def strict(*, name: str, path: Path, pinned: bool = False) -> None:
        if rig.engine.roots.get(name, str(path)) != str(path):
            raise EngineRefusedError(f"the engine has {name} from another folder")
        load(name=name, path=path, pinned=pinned)

    rig.engine.load = strict  # type: ignore[method-assign]
    outcome = warm(agent, parse_warm(release.warm()))
    assert outcome is not None
    assert outcome.outcome == "loaded"
    assert agent.tombstones.may_be_read(other.name)


def test_an_unforeseen_error_is_told_as_one_that_may_pass(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    release, agent = rig.release(), rig.agent()

    def broken(*, name: str, path: Path, pinned: bool = False) -> None:
        raise OverflowError(name, path, pinned)

    rig.engine.load = broken  # type: ignore[method-assign]
    outcome = warm(agent, parse_warm(release.warm()))
    assert outcome is not None
    assert (outcome.outcome, outcome.error_class) == ("failed", "transient")
    assert outcome.message == "node_fault: OverflowError"
    assert "unforeseen" in caplog.text
    assert rig.told(agent)[-1] == "failed"


def test_files_that_were_found_corrupted_while_waiting_for_the_turn_are_not_loaded(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    weights = next(file for file in release.files if file.path.endswith(".safetensors"))
    tell = agent.courier.tell

    def corrupt(outcome: Outcome) -> None:
        if outcome.outcome == "loading":
            path = agent.cache.folder(release.name) / weights.path
            path.chmod(0o644)
            path.write_bytes(b"\0" * weights.size)
            assert agent.cache.drop_if_corrupted(weights.sha256)
        tell(outcome)

    agent.courier.tell = corrupt  # type: ignore[method-assign]
    outcome = warm(agent, parse_warm(release.warm()))
    assert outcome is not None
    assert (outcome.outcome, outcome.error_class) == ("failed", "transient")
    assert ("load", release.name) not in rig.engine.calls


def test_a_file_that_could_not_be_opened_once_is_not_given_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    release, agent = rig.release(), rig.agent()
    failing, opened = [OSError(24, "Too many open files")], os.open

    def once(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if failing and str(path).startswith(str(agent.cache.folder(release.name))) and flags & os.O_NOFOLLOW:
            raise failing.pop()
        return opened(path, flags, mode)

    monkeypatch.setattr("os.open", once)
    assert run(agent, release).outcome == "loaded"
    assert failing == []


def test_only_what_was_claimed_is_downloaded_and_what_is_lost_meanwhile_after_it(rig: Rig) -> None:
    release, other, agent = rig.release(), rig.release(version="v2", seed=2), rig.agent()
    fetch(agent, parse_fetch(other.fetch()))
    shared = next(file for file in other.files if file.sha256 in {each.sha256 for each in release.files})
    claimed: list[set[str]] = []
    downloading, fetched = agent.cache.downloading, agent.fetcher.fetch

    @contextmanager
    def losing(files: Iterable[WantedFile], *, check: Callable[[], None] = lambda: None) -> Iterator[None]:
        listed = tuple(files)
        claimed.append({file.sha256 for file in listed})
        with downloading(listed, check=check):
            if len(claimed) == 1:
                blob = rig.root / "blobs" / shared.sha256
                blob.chmod(0o644)
                blob.write_bytes(b"\0" * shared.size)
                assert agent.cache.drop_if_corrupted(shared.sha256)
            yield

    def strict(wanted: Iterable[tuple[WantedFile, Path]], *, is_void: Callable[[], bool] = lambda: False) -> None:
        pairs = tuple(wanted)
        assert {file.sha256 for file, _ in pairs} <= claimed[-1]
        fetched(pairs, is_void=is_void)

    agent.cache.downloading = losing  # type: ignore[method-assign]
    agent.fetcher.fetch = strict  # type: ignore[method-assign]
    assert run(agent, release).outcome == "loaded"
    assert claimed[1:] == [{shared.sha256}]


FREES = replace(CAPABILITIES["vllm"], true_unload=True)


def leaving(*releases: Release, generation: int = 2) -> list[dict[str, Any]]:
    return [{"engine_name": each.name, "generation": generation} for each in releases]


def warm_beside(rig: Rig, agent: Agent, old: Release, *, generation: int = 2) -> list[tuple[str, str]]:
    """What the engine was told to take out and in when a newcomer is loaded while ``old`` is to leave."""
    newcomer = rig.release(seed=7)
    rig.engine.calls.clear()
    outcome = warm(agent, parse_warm(newcomer.warm(leaving=leaving(old, generation=generation))))
    assert outcome is not None
    assert outcome.outcome == "loaded"
    return [(what, name) for what, name in rig.engine.calls if what in {"load", "unload"}]


def test_what_is_to_leave_goes_before_the_newcomer_comes(rig: Rig) -> None:
    rig.engine.capabilities = FREES
    old, agent = rig.release(), rig.agent()
    run(agent, old)
    assert warm_beside(rig, agent, old) == [("unload", old.name), ("load", rig.release(seed=7).name)]
    assert agent.cache.has(old.name)


def test_what_is_in_use_or_was_asked_for_again_does_not_make_way(rig: Rig) -> None:
    rig.engine.capabilities = FREES
    old, agent = rig.release(), rig.agent()
    run(agent, old, generation=3)
    assert warm_beside(rig, agent, old, generation=2) == [("load", rig.release(seed=7).name)]
    rig.engine.unload(rig.release(seed=7).name)
    rig.engine.busy = frozenset({old.name})
    assert ("unload", old.name) not in warm_beside(rig, rig.agent(), old, generation=4)


def test_an_engine_whose_unload_frees_nothing_is_not_told_twice(rig: Rig) -> None:
    old, agent = rig.release(), rig.agent()
    run(agent, old)
    assert warm_beside(rig, agent, old) == [("load", rig.release(seed=7).name)]
