"""Each driver beside its server: four contract servers, and a real vLLM when the environment names one."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.factories.adapters import adapter_files
from tests.fakes.engine_lorax import FakeLoraxServer
from tests.fakes.engine_sglang import FakeSglangServer
from tests.fakes.engine_tgi import FakeTgiServer
from tests.fakes.engine_vllm import FakeEngineServer
from tests.fakes.serving import FakeServer
from workers.node.engines.book import Book
from workers.node.engines.lorax import LoraxEngine
from workers.node.engines.ports import Engine
from workers.node.engines.sglang import SglangEngine
from workers.node.engines.tgi import Pace, TgiEngine
from workers.node.engines.vllm import VllmEngine

BASE = "base"
REAL_URL = os.environ.get("LOREKEEPER_VLLM_URL", "")
REAL_ADAPTER = os.environ.get("LOREKEEPER_TEST_ADAPTER", "")


@dataclass(frozen=True)
class Contender:
    """A driver, its engine's base and a good adapter on its disk; `restart` and `halt` only for contract servers."""

    kind: str
    engine: Engine
    base: str
    adapter: Path
    restart: Callable[[], object] | None = None
    halt: Callable[[], None] | None = None
    url: str = REAL_URL

    def variant(self, folder: Path, **config: object) -> Path:
        """A copy of the adapter, with other values in its configuration."""
        shutil.copytree(self.adapter, folder)
        path = folder / "adapter_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
        return folder


class HookOf:
    """A restarter for a contract server in this process."""

    available = True

    def __init__(self, restart: Callable[[], object]) -> None:
        self._restart = restart

    def restart(self) -> None:
        self._restart()


FAST = Pace(window_s=0.0, drain_s=0.5, start_s=0.05, poll_s=0.01)


def write_adapter(folder: Path, *, seed: int = 0, nan: bool = False) -> Path:
    """A small adapter of rank 8, told apart by its seed."""
    folder.mkdir(parents=True)
    for name, data in adapter_files(seed=seed, rank=8).items():
        poison = nan and name.endswith(".safetensors")
        (folder / name).write_bytes(data[:-4] + b"\x00\x00\xc0\x7f" if poison else data)
    return folder


class Stand:
    """One engine that several tests talk to one after the other; `contender` has it as new, with a fresh driver."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        servers: dict[str, Callable[[], FakeServer]] = {
            "vllm": lambda: FakeEngineServer(base=BASE),
            "sglang": lambda: FakeSglangServer(base=BASE),
            "lorax": lambda: FakeLoraxServer(base=BASE),
            "tgi": lambda: FakeTgiServer(base=BASE, set_file=folder / "tgi.env"),
        }
        self._server = None if kind == "real-vllm" else servers[kind]()

    def close(self) -> None:
        if self._server is not None:
            self._server.halt()

    @contextmanager
    def contender(self, folder: Path) -> Iterator[Contender]:
        made = _real() if self._server is None else self._fake(self._server, folder)
        yield made
        made.engine.close()

    def _fake(self, server: FakeServer, folder: Path) -> Contender:
        server.reset()
        return Contender(
            self.kind,
            _driver(self.kind, server, folder),
            BASE,
            write_adapter(folder / "adapter"),
            restart=server.restart,
            halt=server.halt,
            url=server.url,
        )


def _driver(kind: str, server: FakeServer, folder: Path) -> Engine:
    book = Book(folder / f"{kind}.json", kind=kind, starts_with_wanted=kind == "tgi")
    match server:
        case FakeTgiServer():
            server.set_file = folder / "tgi.env"
            hook = HookOf(server.restart)
            return TgiEngine(
                server.url, base_model=BASE, book=book, set_file=server.set_file, restarter=hook, pace=FAST
            )
        case FakeSglangServer():
            return SglangEngine(server.url, base_model=BASE, book=book)
        case FakeLoraxServer():
            server.state.cache = folder
            return LoraxEngine(server.url, base_model=BASE, book=book)
        case _:
            return VllmEngine(server.url)


def _real() -> Contender:
    base = str(httpx.get(f"{REAL_URL}/v1/models", trust_env=False).json()["data"][0]["id"])
    return Contender("real-vllm", VllmEngine(REAL_URL), base, Path(REAL_ADAPTER).absolute())
