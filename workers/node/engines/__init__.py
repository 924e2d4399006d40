"""Engines behind one port; which driver is used is the operator's setting."""

from pathlib import Path
from typing import Protocol

from workers.node.engines.book import Book
from workers.node.engines.lorax import LoraxEngine
from workers.node.engines.ports import Engine, Restarter
from workers.node.engines.restart import CommandRestarter
from workers.node.engines.sglang import SglangEngine
from workers.node.engines.tgi import Pace, TgiEngine
from workers.node.engines.vllm import VllmEngine
from workers.node.errors import SettingError

# A load is waited for longer than the engine may stand still for it: that it hangs is noticed while somebody waits.
BEYOND_LOAD_S = 60.0


class EngineSettings(Protocol):
    """The part of the agent's settings that is about its engine."""

    @property
    def cache(self) -> Path: ...
    @property
    def engine_kind(self) -> str: ...
    @property
    def engine_url(self) -> str: ...
    @property
    def engine_restart(self) -> tuple[str, ...]: ...
    @property
    def engine_start_s(self) -> float: ...
    @property
    def load_s(self) -> float: ...
    @property
    def engine_token(self) -> str: ...
    @property
    def base_model(self) -> str: ...


def make_restarter(settings: EngineSettings, engine: Engine) -> Restarter:
    """The operator's way to restart the engine, or one that always says that there is none.

    A driver that has the engine restarted for its own ends does it, so that the two don't meet.
    """
    return engine if isinstance(engine, TgiEngine) else CommandRestarter(settings.engine_restart)


def make_engine(settings: EngineSettings) -> Engine:
    """The driver for the node's engine; what it notes is kept in the cache folder, under `engine`.

    Raises:
        SettingError: an engine of this kind can't be driven with these settings.

    """
    notes, url, base_model = settings.cache / "engine", settings.engine_url, settings.base_model
    load_timeout_s = settings.load_s + BEYOND_LOAD_S
    match settings.engine_kind:
        case "vllm":
            return VllmEngine(url, residency_token=settings.engine_token, load_timeout_s=load_timeout_s)
        case "tgi":
            return _make_tgi(settings, notes)
        case "sglang":
            if ":" in base_model:
                raise SettingError("LOREKEEPER_NODE_BASE_MODEL has a colon, which SGLang takes for the adapter's")
            book = Book(notes / "sglang.json", kind="sglang")
            return SglangEngine(url, base_model=base_model, book=book, load_timeout_s=load_timeout_s)
        case "lorax":
            book = Book(notes / "lorax.json", kind="lorax")
            return LoraxEngine(url, base_model=base_model, book=book, load_timeout_s=load_timeout_s)
        case kind:
            raise SettingError(f"LOREKEEPER_NODE_ENGINE names an unknown kind of engine: {kind!a}")


def _make_tgi(settings: EngineSettings, notes: Path) -> Engine:
    restarter = CommandRestarter(settings.engine_restart)
    if not restarter.available:
        raise SettingError("LOREKEEPER_NODE_ENGINE_RESTART is missing: TGI changes its adapters by a restart")
    return TgiEngine(
        settings.engine_url,
        base_model=settings.base_model,
        book=Book(notes / "tgi.json", kind="tgi", starts_with_wanted=True),
        set_file=notes / "tgi-adapters.env",
        restarter=restarter,
        pace=Pace(start_s=settings.engine_start_s),
    )
