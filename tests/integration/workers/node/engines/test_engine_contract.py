"""What the agent relies on in every engine: each driver against its contract server, and vLLM's against a real one.

LOREKEEPER_VLLM_URL names a running vLLM without adapters, LOREKEEPER_TEST_ADAPTER a folder with one for its base. That
server is left as it was found: nothing that could poison it is loaded.
"""

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from registry.reports import PROBE_TEXT
from tests.integration.workers.node.engines.contenders import (
    REAL_ADAPTER,
    REAL_URL,
    Contender,
    Stand,
    write_adapter,
)
from workers.node.engines.capabilities import CAPABILITIES
from workers.node.errors import EngineAwayError, EngineRefusedError, NoEffectError, PoisonError
from workers.node.probe import Prober

KINDS = tuple(CAPABILITIES)
NEEDS_REAL = pytest.mark.skipif(not (REAL_URL and REAL_ADAPTER), reason="LOREKEEPER_VLLM_URL names no running vLLM")
NAMES = ("lk-contract-a", "lk-contract-b")


@pytest.fixture(scope="module", params=[*KINDS, pytest.param("real-vllm", marks=NEEDS_REAL)])
def stand(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    made = Stand(request.param, tmp_path_factory.mktemp("stand"))
    yield made
    made.close()


@pytest.fixture
def subject(stand: Stand, tmp_path: Path) -> Iterator[Contender]:
    """Every kind, the real one too."""
    with stand.contender(tmp_path) as made:
        yield made
        if stand.kind == "real-vllm":
            for name in NAMES:
                made.engine.unload(name)


@pytest.fixture
def fake(stand: Stand, tmp_path: Path) -> Iterator[Contender]:
    """Every kind of contract server, for what no real engine should be put through."""
    if stand.kind == "real-vllm":
        pytest.skip("a real engine is left as it was found")
    with stand.contender(tmp_path) as made:
        yield made


def probe(subject: Contender, name: str) -> float:
    prober = Prober(subject.engine, base_model=subject.base, sleep=lambda _: None)
    return prober.probe(name, boot_id=subject.engine.boot().id)


def test_a_life_has_one_id_and_is_healthy(subject: Contender) -> None:
    boot = subject.engine.boot()
    assert boot.healthy
    assert boot.id.startswith(f"{subject.kind.removeprefix('real-')}-")
    assert subject.engine.boot() == boot


def test_a_loaded_adapter_is_listed_with_its_path_and_the_base_is_not(subject: Contender) -> None:
    subject.engine.load(name=NAMES[0], path=subject.adapter)
    listed = {adapter.name: adapter.root for adapter in subject.engine.list_loaded()}
    assert listed[NAMES[0]] == str(subject.adapter)
    assert subject.base not in listed


def test_loading_again_from_the_same_folder_is_success(subject: Contender) -> None:
    subject.engine.load(name=NAMES[0], path=subject.adapter)
    subject.engine.load(name=NAMES[0], path=subject.adapter)
    assert [adapter.name for adapter in subject.engine.list_loaded()] == [NAMES[0]]


def test_loading_the_name_from_another_folder_is_refused(subject: Contender, tmp_path: Path) -> None:
    subject.engine.load(name=NAMES[0], path=subject.adapter)
    with pytest.raises(EngineRefusedError, match="from another folder"):
        subject.engine.load(name=NAMES[0], path=subject.variant(tmp_path / "other"))


def test_unloading_makes_the_name_unknown_and_twice_is_success(subject: Contender) -> None:
    subject.engine.load(name=NAMES[0], path=subject.adapter)
    subject.engine.unload(NAMES[0])
    subject.engine.unload(NAMES[0])
    assert NAMES[0] not in {adapter.name for adapter in subject.engine.list_loaded()}
    with pytest.raises(EngineAwayError, match=f"not know {NAMES[0]}"):
        subject.engine.read_prompt(model=NAMES[0], prompt=PROBE_TEXT)


def test_progress_is_another_number_after_a_request_where_it_is_told(subject: Contender) -> None:
    before = subject.engine.progress()
    assert subject.engine.progress() == before
    subject.engine.read_prompt(model=subject.base, prompt=PROBE_TEXT)
    deadline = time.monotonic() + 2
    while before is not None and subject.engine.progress() == before:
        assert time.monotonic() < deadline
    assert (before is not None) == subject.kind.endswith("vllm")


def test_what_was_unloaded_can_be_loaded_again(subject: Contender) -> None:
    subject.engine.load(name=NAMES[0], path=subject.adapter)
    subject.engine.unload(NAMES[0])
    subject.engine.load(name=NAMES[0], path=subject.adapter)
    assert probe(subject, NAMES[0]) > 0.05


def test_a_missing_folder_is_refused(subject: Contender, tmp_path: Path) -> None:
    with pytest.raises(EngineRefusedError, match=r"No adapter found|No such file|No local weights found"):
        subject.engine.load(name=NAMES[0], path=tmp_path / "nowhere")
    assert subject.engine.list_loaded() == ()


def test_a_truncated_file_is_not_loaded_and_harms_nobody(subject: Contender, tmp_path: Path) -> None:
    subject.engine.load(name=NAMES[1], path=subject.adapter)
    folder = subject.variant(tmp_path / "torn")
    (folder / "adapter_model.safetensors").write_bytes(b"\x10")
    with pytest.raises(EngineRefusedError, match=r"deserializing header|does not start with this adapter"):
        subject.engine.load(name=NAMES[0], path=folder)
    assert [adapter.name for adapter in subject.engine.list_loaded()] == [NAMES[1]]
    assert probe(subject, NAMES[1]) > 0.05


def test_readings_are_numbers_repeat_themselves_and_name_their_model(subject: Contender) -> None:
    subject.engine.load(name=NAMES[0], path=subject.adapter)
    for model in (subject.base, NAMES[0]):
        first, second = (subject.engine.read_prompt(model=model, prompt=PROBE_TEXT) for _ in range(2))
        assert first.model == model
        assert len(first.log_probabilities) > 10
        assert all(map(math.isfinite, first.log_probabilities))
        assert first.log_probabilities == pytest.approx(second.log_probabilities, abs=0.005)


def test_a_good_adapter_passes_the_probe(subject: Contender) -> None:
    subject.engine.load(name=NAMES[0], path=subject.adapter)
    assert probe(subject, NAMES[0]) > 0.05


def test_an_adapter_without_effect_fails_the_probe(subject: Contender, tmp_path: Path) -> None:
    folder = subject.variant(tmp_path / "zero")
    weights = load_file(folder / "adapter_model.safetensors")
    save_file(
        {name: 0 * tensor if "lora_B" in name else tensor for name, tensor in weights.items()},
        folder / "adapter_model.safetensors",
    )
    subject.engine.load(name=NAMES[1], path=folder)
    with pytest.raises(NoEffectError, match="reads like the base"):
        probe(subject, NAMES[1])


def test_an_idle_engine_says_that_nothing_is_in_use_or_that_it_does_not_tell(subject: Contender) -> None:
    subject.engine.load(name=NAMES[0], path=subject.adapter)
    probe(subject, NAMES[0])
    reports = subject.engine.capabilities.reports_in_use
    assert subject.engine.in_use() == (frozenset() if reports else None)
    assert (subject.engine.tiers() is None) is not subject.engine.capabilities.reads_back


def test_nan_weights_are_noticed(fake: Contender, tmp_path: Path) -> None:
    fake.engine.load(name=NAMES[0], path=write_adapter(tmp_path / "nan", seed=1, nan=True))
    with pytest.raises(PoisonError):
        probe(fake, NAMES[0])


def test_a_restart_is_another_life_that_knows_no_more_than_it_was_started_with(fake: Contender) -> None:
    fake.engine.load(name=NAMES[0], path=fake.adapter)
    before = fake.engine.boot()
    probe(fake, NAMES[0])
    assert fake.restart is not None
    fake.restart()
    assert fake.engine.boot().id != before.id
    kept = [] if fake.engine.capabilities.runtime_load else [NAMES[0]]
    assert [adapter.name for adapter in fake.engine.list_loaded()] == kept
    if kept:
        assert probe(fake, NAMES[0]) > 0.05


def test_several_are_loaded_at_once_by_as_many_threads(fake: Contender, tmp_path: Path) -> None:
    folders = {f"lk-{seed}": write_adapter(tmp_path / f"a{seed}", seed=seed) for seed in range(4)}
    with ThreadPoolExecutor(4) as pool:
        loads = [pool.submit(fake.engine.load, name=name, path=path) for name, path in folders.items()]
        for load in loads:
            load.result()
    listed = {adapter.name: Path(adapter.root) for adapter in fake.engine.list_loaded()}
    assert listed == folders
    readings = {fake.engine.read_prompt(model=name, prompt=PROBE_TEXT).log_probabilities for name in folders}
    assert len(readings) == len(folders)


def test_an_engine_that_has_ended_is_away_for_every_question(fake: Contender) -> None:
    fake.engine.boot()
    assert fake.halt is not None
    fake.halt()
    with pytest.raises(EngineAwayError, match="does not answer"):
        fake.engine.boot()
    with pytest.raises(EngineAwayError, match="does not answer"):
        fake.engine.read_prompt(model=fake.base, prompt=PROBE_TEXT)
    if fake.engine.capabilities.runtime_load:
        with pytest.raises(EngineAwayError, match="does not answer"):
            fake.engine.load(name=NAMES[0], path=fake.adapter)
