import json

import pytest

from tests.unit.workers.node.kit import NAN, Release, Rig
from workers.node.agent import Agent
from workers.node.commands import parse_evict, parse_warm
from workers.node.errors import EngineFailedError, EngineFullError, EngineRefusedError
from workers.node.evict import evict, sweep
from workers.node.reports import Outcome
from workers.node.warm import warm


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
        {"fetch", "verify", "load", "probe"},
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
    outcome = warm(agent, parse_warm(release.warm(generation=9, grant=release.grant(node="edge-2", generation=9))))
    assert outcome is not None
    assert (outcome.outcome, outcome.error_class) == ("failed", "refused")
    assert rig.store.asked == []
    assert rig.engine.calls == []
    assert agent.cache.names() == ()
    # Nor can an unsigned generation keep out the real command.
    assert run(agent, release, generation=2).outcome == "loaded"


def test_a_store_that_gives_other_bytes_leaves_nothing_behind(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    for key, data in rig.store.objects.items():
        rig.store.objects[key] = data[:-1] + b"\x07"
    outcome = run(agent, release)
    assert (outcome.error_class, "wrong_bytes" in outcome.message) == ("permanent", True)
    assert list((rig.root / "partial").iterdir()) == []
    assert list((rig.root / "blobs").iterdir()) == []


def test_a_full_budget_is_refused_before_the_download(rig: Rig) -> None:
    rig.budget_bytes = 100
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
    assert run(agent, release).error_class == "permanent"
    assert agent.taint.of("boot-1") is not None
    assert agent.taint.poison("boot-1") is None


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
