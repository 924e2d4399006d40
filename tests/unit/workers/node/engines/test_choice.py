"""Which driver the settings choose, and that control's plans rely on nothing that a driver doesn't declare."""

from dataclasses import dataclass, fields
from pathlib import Path

import httpx
import pytest

from cachecontrol import engines as planned
from cachecontrol.states import EngineKind
from workers.node.engines import make_engine, make_restarter
from workers.node.engines.capabilities import CAPABILITIES
from workers.node.engines.connection import Connection
from workers.node.engines.tgi import TgiEngine
from workers.node.errors import SettingError


@dataclass
class Settings:
    cache: Path
    engine_kind: str = "vllm"
    engine_url: str = "http://engine.test"
    engine_restart: tuple[str, ...] = ()
    engine_start_s: float = 600.0
    load_s: float = 240.0
    engine_token: str = ""
    base_model: str = "base"


@pytest.mark.parametrize("kind", EngineKind)
def test_plan_and_driver_say_the_same_of_each_kind(kind: EngineKind) -> None:
    told, driven = planned.CAPABILITIES[kind], CAPABILITIES[kind.value]
    for field in fields(told):
        assert getattr(told, field.name) is getattr(driven, field.name), field.name


@pytest.mark.parametrize("kind", EngineKind)
def test_every_kind_has_its_driver(tmp_path: Path, kind: EngineKind) -> None:
    engine = make_engine(Settings(tmp_path, engine_kind=kind.value, engine_restart=("restart",)))
    assert engine.capabilities == CAPABILITIES[kind.value]
    engine.close()


def test_a_token_for_the_plugin_makes_vllm_read_back(tmp_path: Path) -> None:
    engine = make_engine(Settings(tmp_path, engine_token="t"))
    assert engine.capabilities.reads_back
    assert engine.capabilities.true_unload
    engine.close()


def test_tgi_needs_a_way_to_be_restarted(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="LOREKEEPER_NODE_ENGINE_RESTART is missing"):
        make_engine(Settings(tmp_path, engine_kind="tgi"))


def test_the_base_of_sglang_has_no_colon(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="LOREKEEPER_NODE_BASE_MODEL has a colon"):
        make_engine(Settings(tmp_path, engine_kind="sglang", base_model="org:base"))


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="unknown kind of engine: 'other'"):
        make_engine(Settings(tmp_path, engine_kind="other"))


def test_the_operators_command_is_the_way_to_restart(tmp_path: Path) -> None:
    engine = make_engine(Settings(tmp_path))
    assert not make_restarter(Settings(tmp_path), engine).available
    assert make_restarter(Settings(tmp_path, engine_restart=("true",)), engine).available
    engine.close()


def test_a_tgi_is_restarted_by_its_driver_between_two_changes_of_its_set(tmp_path: Path) -> None:
    settings = Settings(tmp_path, engine_kind="tgi", engine_restart=("restart",))
    engine = make_engine(settings)
    assert isinstance(make_restarter(settings, engine), TgiEngine)
    engine.close()


@pytest.mark.parametrize("kind", ["vllm", "sglang", "lorax"])
def test_a_load_is_waited_for_longer_than_the_engine_may_take(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would be given up before anybody could see that the engine hangs."""
    seconds: list[float | None] = []

    def send(_self: Connection, *_what: object, timeout_s: float | None = None, **_more: object) -> httpx.Response:
        seconds.append(timeout_s)
        return httpx.Response(200, json={})

    monkeypatch.setattr(Connection, "send", send)
    engine = make_engine(Settings(tmp_path, engine_kind=kind, load_s=1000))
    engine.load(name="lk-a", path=tmp_path)
    engine.close()
    assert seconds[-1] == 1060
