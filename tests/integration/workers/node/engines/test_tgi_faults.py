"""What only TGI does, and what can go wrong with a set that is changed by a restart."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Timer

import httpx
import pytest

from tests.fakes.engine_tgi import FakeTgiServer
from tests.integration.workers.node.engines.contenders import BASE, FAST, HookOf, write_adapter
from workers.node.engines.book import Book
from workers.node.engines.tgi import Pace, TgiEngine
from workers.node.errors import EngineAwayError, EngineError, EngineFailedError, EngineRefusedError, RestartError

WINDOW_S = 2.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeTgiServer]:
    with FakeTgiServer(base=BASE, set_file=tmp_path_factory.mktemp("tgi") / "tgi.env") as made:
        yield made


@pytest.fixture
def fake(server: FakeTgiServer, tmp_path: Path) -> FakeTgiServer:
    server.set_file = tmp_path / "tgi.env"
    server.reset()
    return server


Make = Callable[..., TgiEngine]


@pytest.fixture
def make(fake: FakeTgiServer, tmp_path: Path) -> Iterator[Make]:
    """A driver, as a new agent on the same disk would have it; `joined` loads are what its window waits for."""
    made: list[TgiEngine] = []

    def new(*, pace: Pace = FAST, joined: int = 0) -> TgiEngine:
        def sleep(seconds: float) -> None:
            while seconds == WINDOW_S and len(engine._batcher._open.items if engine._batcher._open else ()) < joined:
                time.sleep(0.001)
            time.sleep(0 if seconds == WINDOW_S else seconds)

        engine = TgiEngine(
            fake.url,
            base_model=BASE,
            book=Book(tmp_path / "tgi.json", kind="tgi", starts_with_wanted=True),
            set_file=fake.set_file,
            restarter=HookOf(fake.restart),
            pace=replace(pace, window_s=WINDOW_S) if joined else pace,
            sleep=sleep,
        )
        made.append(engine)
        return engine

    yield new
    for engine in made:
        engine.close()


def adapters(folder: Path, *names: str) -> dict[str, Path]:
    return {name: write_adapter(folder / name, seed=seed) for seed, name in enumerate(names)}


def torn(folder: Path) -> Path:
    write_adapter(folder)
    (folder / "adapter_model.safetensors").write_bytes(b"\x10")
    return folder


def load_all(engine: TgiEngine, folders: dict[str, Path]) -> dict[str, BaseException | None]:
    with ThreadPoolExecutor(len(folders)) as pool:
        loads = {name: pool.submit(engine.load, name=name, path=path) for name, path in folders.items()}
        return {name: load.exception() for name, load in loads.items()}


def names(engine: TgiEngine) -> set[str]:
    return {adapter.name for adapter in engine.list_loaded()}


def test_those_that_come_within_the_window_share_one_restart(make: Make, fake: FakeTgiServer, tmp_path: Path) -> None:
    engine, folders = (
        make(joined=3),
        adapters(tmp_path, "lk-a", "lk-b", "lk-c"),
    )
    before = fake.state.starts
    assert set(load_all(engine, folders).values()) == {None}
    assert fake.state.starts == before + 1
    assert names(engine) == fake.state.adapters.keys() == {"lk-a", "lk-b", "lk-c"}


def test_the_set_is_one_line_that_an_environment_file_may_be(make: Make, fake: FakeTgiServer, tmp_path: Path) -> None:
    engine, folders = make(), adapters(tmp_path, "lk-b", "lk-a")
    load_all(engine, folders)
    assert fake.set_file.read_text() == f"LORA_ADAPTERS=lk-a={folders['lk-a']},lk-b={folders['lk-b']}\n"


def test_a_restart_for_the_set_is_the_same_life(make: Make, tmp_path: Path) -> None:
    engine = make()
    before = engine.boot()
    engine.read_prompt(model=BASE, prompt="one two three")
    load_all(engine, adapters(tmp_path, "lk-a"))
    assert engine.boot() == before


def test_a_path_that_would_break_the_line_is_refused(make: Make, tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "a,b=c")
    with pytest.raises(EngineRefusedError, match="comma or an equals sign"):
        make().load(name="lk-a", path=folder)


def test_one_bad_adapter_of_several_is_found_by_trying_each_alone(
    make: Make, fake: FakeTgiServer, tmp_path: Path
) -> None:
    make().load(name="lk-old", path=write_adapter(tmp_path / "old", seed=9))
    engine = make(joined=2)
    folders = {**adapters(tmp_path, "lk-good"), "lk-torn": torn(tmp_path / "torn")}
    assert {type(error) for error in load_all(engine, folders).values()} == {EngineAwayError}
    assert fake.state.adapters.keys() == {"lk-old"}
    ends = load_all(engine, folders)
    assert ends["lk-good"] is None
    assert isinstance(ends["lk-torn"], EngineRefusedError)
    assert names(engine) == fake.state.adapters.keys() == {"lk-old", "lk-good"}


def test_what_runs_is_waited_for(make: Make, fake: FakeTgiServer, tmp_path: Path) -> None:
    engine = make(pace=Pace(window_s=0.0, drain_s=20.0, start_s=5.0, poll_s=0.01))
    fake.faults.running = 1
    running_at_restart: list[int] = []

    def restart() -> None:
        running_at_restart.append(fake.faults.running)
        fake.restart()

    done = Timer(0.1, lambda: setattr(fake.faults, "running", 0))
    done.start()
    engine._restarter = HookOf(restart)
    load_all(engine, adapters(tmp_path, "lk-a"))
    assert running_at_restart == [0]


def test_what_never_ends_is_not_waited_for_without_limit(make: Make, fake: FakeTgiServer, tmp_path: Path) -> None:
    engine = make(pace=Pace(window_s=0.0, drain_s=0.05, start_s=5.0, poll_s=0.01))
    fake.faults.queued = 1
    assert load_all(engine, adapters(tmp_path, "lk-a")) == {"lk-a": None}


def test_an_unload_takes_effect_with_the_next_start(make: Make, fake: FakeTgiServer, tmp_path: Path) -> None:
    engine, folders = make(), adapters(tmp_path, "lk-a", "lk-b")
    engine.load(name="lk-a", path=folders["lk-a"])
    starts = fake.state.starts
    engine.unload("lk-a")
    assert (fake.state.starts, set(fake.state.adapters)) == (starts, {"lk-a"})
    assert fake.set_file.read_text() == "LORA_ADAPTERS=\n"
    engine.load(name="lk-b", path=folders["lk-b"])
    assert fake.state.adapters.keys() == {"lk-b"}


def test_an_unknown_id_is_answered_by_the_base_so_that_the_driver_asks_for_none(
    make: Make, fake: FakeTgiServer
) -> None:
    body = {"inputs": "hi", "parameters": {"adapter_id": "lk-x", "max_new_tokens": 1}}
    assert httpx.post(f"{fake.url}/generate", json=body).json()["generated_text"] == f"[{BASE}] "
    asked = len(fake.state.requests)
    with pytest.raises(EngineAwayError, match="would answer as the base"):
        make().read_prompt(model="lk-x", prompt="hi")
    assert len(fake.state.requests) == asked


def test_a_hook_that_fails_leaves_everything_as_it_was(make: Make, fake: FakeTgiServer, tmp_path: Path) -> None:
    engine, folders = make(), adapters(tmp_path, "lk-a", "lk-b")
    engine.load(name="lk-a", path=folders["lk-a"])
    line = fake.set_file.read_text()

    def fail() -> None:
        raise RestartError("no such unit")

    engine._restarter = HookOf(fail)
    with pytest.raises(RestartError, match="no such unit"):
        engine.load(name="lk-b", path=folders["lk-b"])
    assert fake.set_file.read_text() == line
    assert names(engine) == {"lk-a"}
    assert engine.boot().healthy


def test_a_restart_by_somebody_else_is_another_life_with_the_same_set(
    make: Make, fake: FakeTgiServer, tmp_path: Path
) -> None:
    engine = make()
    load_all(engine, adapters(tmp_path, "lk-a"))
    before = engine.boot()
    fake.halt()
    with pytest.raises(EngineAwayError):
        engine.boot()
    fake.launch()
    assert engine.boot().id != before.id
    assert names(engine) == {"lk-a"}


def test_a_restarted_agent_knows_the_set(make: Make, fake: FakeTgiServer, tmp_path: Path) -> None:
    first, folders = make(), adapters(tmp_path, "lk-a")
    load_all(first, folders)
    life, starts = first.boot().id, fake.state.starts
    second = make()
    assert second.boot().id == life
    second.load(name="lk-a", path=folders["lk-a"])
    assert (names(second), fake.state.starts) == ({"lk-a"}, starts)


def test_log_probabilities_that_are_switched_off_are_told(make: Make, fake: FakeTgiServer) -> None:
    fake.faults.no_prefill_logprobs = True
    with pytest.raises(EngineRefusedError, match="--enable-prefill-logprobs"):
        make().read_prompt(model=BASE, prompt="one two three")


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"overloaded": True}, EngineAwayError),
        ({"generation_error": "transport error: shard 0"}, EngineAwayError),
        ({"generation_error": "sizes of tensors must match"}, EngineFailedError),
    ],
)
def test_a_failed_reading_is_classed(
    make: Make, fake: FakeTgiServer, fault: dict[str, object], kind: type[EngineError]
) -> None:
    for name, value in fault.items():
        setattr(fake.faults, name, value)
    with pytest.raises(kind):
        make().read_prompt(model=BASE, prompt="one two three")


def test_an_engine_that_says_it_is_not_well_is_believed(make: Make, fake: FakeTgiServer) -> None:
    fake.faults.unhealthy = True
    assert make().boot().healthy is False


def test_an_engine_that_is_not_there_is_away(tmp_path: Path) -> None:
    book = Book(tmp_path / "tgi.json", kind="tgi", starts_with_wanted=True)
    hook = HookOf(lambda: None)
    engine = TgiEngine(
        "http://127.0.0.1:9", base_model=BASE, book=book, set_file=tmp_path / "e", restarter=hook, pace=FAST
    )
    with closing(engine), pytest.raises(EngineAwayError, match="does not answer: ConnectError"):
        engine.boot()


def test_a_restart_that_is_asked_for_while_the_set_changes_is_that_one_and_ends_the_life(
    make: Make, fake: FakeTgiServer, tmp_path: Path
) -> None:
    engine, starts = make(), fake.state.starts
    before, begun, go = engine.boot().id, Event(), Event()

    def restart() -> None:
        begun.set()
        go.wait(5)
        fake.restart()

    engine._restarter = HookOf(restart)
    with ThreadPoolExecutor(2) as pool:
        load = pool.submit(engine.load, name="lk-a", path=write_adapter(tmp_path / "a"))
        assert begun.wait(5)
        between, asked = engine._batcher.between, Event()

        @contextmanager
        def noting() -> Iterator[None]:
            asked.set()
            with between():
                yield

        engine._batcher.between = noting  # type: ignore[method-assign]
        recycle = pool.submit(engine.restart)
        assert asked.wait(5)
        go.set()
        load.result(5)
        recycle.result(5)
    assert fake.state.starts == starts + 1
    assert engine.boot().id != before
    assert names(engine) == {"lk-a"}


def test_a_set_that_waits_for_a_restart_is_not_given_to_the_new_life_under_the_old_ones_name(
    make: Make, fake: FakeTgiServer, tmp_path: Path
) -> None:
    engine, starts = make(), fake.state.starts
    before, begun, go = engine.boot().id, Event(), Event()

    def restart() -> None:
        begun.set()
        go.wait(5)
        fake.restart()

    engine._restarter = HookOf(restart)
    with ThreadPoolExecutor(2) as pool:
        recycle = pool.submit(engine.restart)
        assert begun.wait(5)
        with pytest.raises(EngineAwayError, match="being restarted"):
            engine.boot()
        load = pool.submit(engine.load, name="lk-a", path=write_adapter(tmp_path / "a"))
        go.set()
        recycle.result(5)
        with pytest.raises(EngineAwayError, match="another life"):
            load.result(5)
    assert engine.boot().id != before
    engine.load(name="lk-a", path=tmp_path / "a")
    assert fake.state.starts == starts + 2


def test_a_change_that_a_killed_agent_left_half_done_is_taken_back(
    make: Make, fake: FakeTgiServer, tmp_path: Path
) -> None:
    make().load(name="lk-old", path=write_adapter(tmp_path / "old", seed=9))
    killed = make()

    class KilledError(BaseException):
        """The agent's process ends here."""

    def kill() -> None:
        raise KilledError

    killed._restarter = HookOf(kill)
    with pytest.raises(KilledError):
        killed.load(name="lk-torn", path=torn(tmp_path / "torn"))
    assert "lk-torn" in fake.set_file.read_text()
    again = make()
    assert fake.set_file.read_text() == f"LORA_ADAPTERS=lk-old={tmp_path / 'old'}\n"
    fake.restart()
    assert again.boot().healthy
    assert names(again) == {"lk-old"}


@pytest.mark.parametrize("change", ["load", "unload"])
def test_an_agent_killed_between_its_two_notes_of_a_change_leaves_nothing_of_it(
    change: str, make: Make, fake: FakeTgiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the engine's next start would have files that are no version's, or are gone by then."""
    killed = make()
    killed.load(name="lk-old", path=write_adapter(tmp_path / "old", seed=9))

    class KilledError(BaseException):
        """The agent's process ends here."""

    def kill(*_: object) -> None:
        raise KilledError

    if change == "load":
        monkeypatch.setattr(killed._book, "want", kill)
        with pytest.raises(KilledError):
            killed.load(name="lk-torn", path=torn(tmp_path / "torn"))
    else:
        monkeypatch.setattr(killed, "_write_set", kill)
        with pytest.raises(KilledError):
            killed.unload("lk-old")
    again = make()
    expected = f"lk-old={tmp_path / 'old'}" if change == "load" else ""
    assert fake.set_file.read_text() == f"LORA_ADAPTERS={expected}\n"
    fake.restart()
    assert again.boot().healthy


def test_what_is_unloaded_while_a_set_waits_for_the_engine_is_not_brought_back(
    make: Make, fake: FakeTgiServer, tmp_path: Path
) -> None:
    engine = make(pace=Pace(window_s=0.0, drain_s=20.0, start_s=5.0, poll_s=0.01))
    engine.load(name="lk-old", path=write_adapter(tmp_path / "old", seed=9))
    fake.faults.running = 1
    waiting, looks = Event(), engine._is_busy

    def look() -> bool:
        waiting.set()
        return looks()

    engine._is_busy = look  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(engine.load, name="lk-a", path=write_adapter(tmp_path / "a"))
        assert waiting.wait(5)
        engine.unload("lk-old")
        fake.faults.running = 0
        load.result(5)
    assert names(engine) == fake.state.adapters.keys() == {"lk-a"}
