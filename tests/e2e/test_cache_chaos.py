"""Processes killed and stopped, disks full, files corrupted, engines that lie, in the middle of loads on a real vLLM.

Whatever happens: nothing is lost, no answer is another version's, and the fleet is as desired again within 60 s of the
return of what was hurt. All share one stack; those that have the engine restarted come with others between them.
"""

import hashlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from bench.cache.adapters import Built, build_adapters
from bench.cache.base import BASE_NAME, BASE_REVISION, cut_base
from bench.cache.plan import Plan
from bench.cache.policy import put_in_force
from deploy.demo.materials import DEFAULT_CACHE, ensure_base_model
from deploy.embedded.facts import EngineOptions
from deploy.embedded.stack import Stack
from tests.e2e.fleet import Fleet, Heard, readings_of, ref_of
from tests.e2e.harm import (
    core_of,
    damage,
    exchange_reference,
    filled,
    forget_restarts,
    poison,
    poisonous,
    small_disk,
    used,
)
from tests.e2e.journey import Journey, wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]
ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "LOREKEEPER_VALIDATE_DEADLINE": "10",
    "LOREKEEPER_COMMAND_DEADLINE": "5",
    "LOREKEEPER_NODE_TIMEOUT": "6",
    "LOREKEEPER_DRAIN_SECONDS": "0.5",
    "LOREKEEPER_EVICT_GRACE": "2",
    "LOREKEEPER_SWEEP_SECONDS": "1",
    "LOREKEEPER_NODE_HEARTBEAT": "0.5",
    "LOREKEEPER_NODE_HEALTH_SECONDS": "1",
    "LOREKEEPER_NODE_SCRUB_SECONDS": "2",
    "LOREKEEPER_NODE_STANDSTILL_SECONDS": "6",
    "LOREKEEPER_NODE_LOAD_SECONDS": "6",
    "LOREKEEPER_COLD_WAIT": "15",
}
# Of 128 tokens each: one long request writes to all of them.
FEW_BLOCKS = ("--num-gpu-blocks-override", "10")
# Two more than the engine holds, so that something is always being loaded while all are asked for.
VERSIONS, PLACES = 6, 4
PLAN = Plan(layers=4, versions=VERSIONS + 1, tenants=1, ranks=(8,))
MISJUDGED = f"v{VERSIONS}"
CALM = f"base_model: {BASE_NAME}\nloading: {{min_residency_s: 0.5}}\n"
DISK_MIB = 160
WEIGHTS = "adapter_model.safetensors"


@pytest.fixture(scope="module")
def base(stack_folder: Path) -> Path:
    return cut_base(ensure_base_model(ROOT / DEFAULT_CACHE)[0], stack_folder / "base", layers=PLAN.layers)


@pytest.fixture(scope="module")
def built(stack_folder: Path, base: Path) -> Mapping[str, Built]:
    """The versions by name, and one more that is compared with another's reading."""
    versions = build_adapters(stack_folder / "adapters", base, PLAN)
    return {f"v{version.number}": version for version in versions}


@pytest.fixture(scope="module")
def fleet(stack_folder: Path, base: Path, built: Mapping[str, Built]) -> Iterator[Fleet]:
    python = Path(os.environ.get("LOREKEEPER_VLLM_PYTHON", ROOT / ".venv-vllm" / "bin" / "python"))
    assert python.exists(), f"{python} does not exist: run make engine"
    engine = EngineOptions(
        python=python.absolute(),
        model=base,
        base_model=BASE_NAME,
        base_revision=BASE_REVISION,
        gpu_slots=2,
        cpu_slots=PLACES,
        arguments=FEW_BLOCKS,
    )
    stack = Stack(stack_folder / "chaos", engine=engine, settings=SETTINGS, calm_seconds=0)
    with small_disk(stack.data / "cache", mib=DISK_MIB):
        stack.start()
        try:
            yield from set_up(stack, base, built)
        finally:
            stack.stop()


def set_up(stack: Stack, base: Path, built: Mapping[str, Built]) -> Iterator[Fleet]:
    """Versions are pushed, read by PEFT, validated and approved while the engine starts."""
    readings = readings_of(base, {name: built[name] for name in list(built)[:VERSIONS]})
    stack.wait_ready(*(name for name in stack.names if name not in {"engine", "agent"}), "node", seconds=300)
    journey = Journey(stack, base_model=BASE_NAME, base_revision=BASE_REVISION).set_up()
    put_in_force(stack, BASE_NAME, CALM)
    fleet = Fleet(journey, readings)
    for name, version in built.items():
        fleet.bring_in(version.folder, name)
    stack.wait_ready(seconds=300)
    for name in readings:
        fleet.release(name)
    yield fleet
    journey.close()


@pytest.fixture(autouse=True)
def _well(fleet: Fleet) -> None:
    """What was hurt before is whole again, and long ago."""
    fleet.seconds_until_as_desired(time.monotonic(), within=120)
    forget_restarts(fleet.journey.stack)


def cache_of(fleet: Fleet) -> Path:
    return Path(fleet.journey.stack.env_for("agent")["LOREKEEPER_NODE_CACHE"])


def test_an_engine_that_hangs_is_restarted_and_one_that_pauses_is_not(fleet: Fleet) -> None:
    """What computes is stopped; the API in front of it goes on saying that all is well."""
    stack, boot = fleet.journey.stack, fleet.boot_id()
    with fleet.flow() as flow:
        wait_until(lambda: bool(flow.answered_since(0)), "requests flow")
        stack.kill("engine", signal.SIGSTOP, group=True)
        time.sleep(2)
        stack.kill("engine", signal.SIGCONT, group=True)
        back = time.monotonic()
        wait_until(lambda: len(flow.answered_since(back)) >= PLACES, "several versions answer again")
        assert fleet.boot_id() == boot
        began = time.monotonic()
        core_of(stack).suspend()
        assert httpx.get(f"{stack.urls['engine']}/health", timeout=5).status_code == httpx.codes.OK
        back = wait_for_another_engine(fleet, boot)
        wait_until(lambda: len(flow.answered_since(back)) >= PLACES, "several versions answer again")
    seconds = fleet.seconds_until_as_desired(back)
    print(f"hung engine: replaced after {back - began:.1f} s, as desired {seconds:.1f} s later; {flow.summary()}")
    assert not flow.nobodys
    fleet.check_nothing_is_lost(flow)


def wait_for_another_engine(fleet: Fleet, boot: str) -> float:
    """Wait until the engine is another one than this, and ready; the moment of the monotonic clock."""
    wait_until(lambda: fleet.boot_id() not in {"", boot}, "the engine is another one", seconds=180)
    fleet.journey.stack.wait_ready("engine", seconds=240)
    return time.monotonic()


@pytest.mark.parametrize("process", ["agent", "control", "valkey", "engine", "s3", "postgres"])
def test_a_process_killed_in_the_middle_of_loads_loses_nothing_and_the_fleet_heals(fleet: Fleet, process: str) -> None:
    stack = fleet.journey.stack
    with fleet.flow() as flow:
        wait_until(lambda: bool(flow.heard), "requests flow")
        wait_until(fleet.is_loading, "something is being loaded")
        stack.kill(process, signal.SIGKILL, group=True)
        stack.wait_ready(process, seconds=240)
        back = time.monotonic()
        wait_until(lambda: len(flow.answered_since(back)) >= PLACES, "several versions answer again")
        answering = time.monotonic() - back
    seconds = fleet.seconds_until_as_desired(back)
    print(
        f"{process}: answering after {answering:.1f} s, as desired {seconds:.1f} s after its return; {flow.summary()}"
    )
    assert not flow.nobodys
    fleet.check_nothing_is_lost(flow)


def test_an_engine_that_says_it_is_well_while_it_is_poisoned_is_restarted(
    fleet: Fleet, built: Mapping[str, Built], tmp_path: Path
) -> None:
    """Somebody loads an adapter with a NaN past the agent: one long request of it leaves NaNs in the whole KV cache.

    No answer is a number afterwards, and /health goes on saying that all is well.
    """
    engine, boot = fleet.journey.stack.urls["engine"], fleet.boot_id()
    bad = str(poisonous(tmp_path, built["v0"]))
    with fleet.flow() as flow:
        wait_until(lambda: bool(flow.answered_since(0)), "requests flow")
        poison(engine, bad)
        began = time.monotonic()
        assert httpx.get(f"{engine}/health", timeout=5).status_code == httpx.codes.OK
        back = wait_for_another_engine(fleet, boot)
        wait_until(lambda: len(flow.answered_since(back)) >= PLACES, "several versions answer again")
    seconds = fleet.seconds_until_as_desired(back)
    print(f"poisoned engine: replaced after {back - began:.1f} s, as desired {seconds:.1f} s later; {flow.summary()}")
    assert not [each for each in flow.nobodys if each.at > back]
    fleet.check_nothing_is_lost(flow)


def test_a_budget_that_is_used_up_refuses_what_does_not_fit_and_nothing_else(
    fleet: Fleet, built: Mapping[str, Built]
) -> None:
    """The policy leaves so little of the disk that the versions in the engine fill it: others wait for their room."""
    size, blobs = built["v0"].size, cache_of(fleet) / "blobs"
    budget_gb = (PLACES + 0.5) * size / 1e9
    number = put_in_force(
        fleet.journey.stack, BASE_NAME, f"{CALM}adapter_cache: {{disk_cache: {{max_size_gb: {budget_gb:.6f}}}}}\n"
    )
    with fleet.flow() as flow:
        wait_until(lambda: used(blobs) <= budget_gb * 1e9, "the disk is within its budget")
        narrow = time.monotonic()
        time.sleep(2)
        wait_until(lambda: len(flow.answered_since(narrow)) >= PLACES, "what fits answers")
        most = used(blobs)
    with fleet.admin() as admin:
        admin.cache_policies.roll_back(BASE_NAME, to=number - 1)
    seconds = fleet.seconds_until_as_desired(time.monotonic())
    print(
        f"full budget: {most / size:.1f} versions on disk, {flow.summary()}; as desired {seconds:.1f} s after its end"
    )
    assert most <= (PLACES + 1.5) * size
    assert not flow.nobodys
    fleet.check_nothing_is_lost(flow)


def test_a_disk_without_a_byte_left_stops_nothing_that_is_on_it(fleet: Fleet) -> None:
    """Somebody else has taken the whole disk: not even a note can be written. What is there goes on changing places."""
    loaded = sorted(each.version for each in fleet.node().residencies if each.observed == "loaded")
    resting = next(each.version for each in fleet.node().residencies if each.observed == "on_disk")
    with fleet.flow(*loaded) as flow:
        wait_until(lambda: bool(flow.answered_since(0)), "requests flow")
        with filled(cache_of(fleet)):
            full = time.monotonic()
            asked = fleet.hear(resting)
            wait_until(lambda: flow.answered_since(full) >= set(loaded), "what is loaded answers")
    seconds = fleet.seconds_until_as_desired(time.monotonic())
    print(
        f"full disk: {resting} is on it and answers {asked.status}, {flow.summary()};"
        f" as desired {seconds:.1f} s after its end"
    )
    assert asked.whose == resting, asked
    assert not flow.nobodys
    fleet.check_nothing_is_lost(flow)


def test_a_file_corrupted_on_the_disk_is_fetched_again_before_it_is_loaded(fleet: Fleet) -> None:
    with fleet.flow() as flow:
        wait_until(lambda: len(flow.answered_since(0)) == VERSIONS, "every version was loaded once")
    fleet.seconds_until_as_desired(time.monotonic())
    resting = next(each for each in fleet.node().residencies if each.observed == "on_disk")
    file = cache_of(fleet) / "versions" / str(resting.engine_name) / WEIGHTS
    sound = digest_of(file)
    damage(file)
    began = time.monotonic()
    heard = fleet.hear(resting.version)
    print(f"corrupted file: answered as {heard.whose} after {time.monotonic() - began:.1f} s")
    assert heard.whose == resting.version, heard
    assert digest_of(file) == sound
    fleet.check_nothing_is_lost(flow)


def test_a_file_corrupted_under_an_engine_that_has_loaded_it_is_replaced(fleet: Fleet) -> None:
    """An engine that drops the version from its memory reads the file again, and would serve what it finds there.

    So all that is asked for is in its memory here, and stays there until the file is found out.
    """
    loaded = {each.version: str(each.engine_name) for each in fleet.node().residencies if each.observed == "loaded"}
    file = cache_of(fleet) / "versions" / next(iter(loaded.values())) / WEIGHTS
    sound = digest_of(file)
    with fleet.flow(*loaded) as flow:
        wait_until(lambda: flow.answered_since(0) >= loaded.keys(), "the engine has all of them in its memory")
        damage(file)
        seconds = wait_until(lambda: digest_of(file) == sound, "the file is as it was", seconds=60)
    healed = fleet.seconds_until_as_desired(time.monotonic())
    print(f"corrupted under the engine: replaced after {seconds:.1f} s, as desired {healed:.1f} s later")
    assert not flow.nobodys
    fleet.check_nothing_is_lost(flow)


def digest_of(file: Path) -> str:
    """Empty while the file is not there."""
    with suppress(FileNotFoundError):
        return hashlib.sha256(file.read_bytes()).hexdigest()
    return ""


def test_a_version_that_reads_otherwise_than_when_it_was_validated_is_never_served(fleet: Fleet) -> None:
    """What the node's probe is compared with is another version's reading: as if other weights had been validated."""
    boot, heard, why = fleet.boot_id(), list[Heard](), "reads otherwise than where it was validated"
    exchange_reference(fleet.journey.stack, MISJUDGED, fleet.readings["v0"])

    def asked_in_vain() -> bool:
        heard.append(fleet.hear(MISJUDGED))
        return fleet.is_on_record(why)

    with fleet.flow() as flow:
        fleet.release(MISJUDGED)
        wait_until(asked_in_vain, "the node says why", seconds=120)
        # Whoever asks again later has it tried again, and the engine restarted.
        fleet.journey.clients["rui"].versions.revoke(ref_of(MISJUDGED), reason="it is not what was validated")
        # A load that failed may have left something behind: the engine is restarted.
        back = wait_for_another_engine(fleet, boot)
        wait_until(lambda: len(flow.answered_since(back)) >= PLACES, "several versions answer again")
    seconds = fleet.seconds_until_as_desired(back)
    said = [each.status for each in heard]
    print(f"broken probe: {said}, as desired {seconds:.1f} s after the engine's restart; {flow.summary()}")
    assert not any(each.is_answered for each in heard), heard
    assert not flow.nobodys
    fleet.check_nothing_is_lost(flow)
