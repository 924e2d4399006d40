import json
from pathlib import Path

import pytest

from deploy.embedded import ports
from deploy.embedded.errors import NotProvisioned


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    taken: set[int] = set()
    monkeypatch.setattr(ports, "is_free", lambda port: port not in taken)
    return taken


def test_ports_are_chosen_once_and_kept(tmp_path: Path, taken: set[int]) -> None:
    first = ports.settle_ports(tmp_path / "stack.json", ["web", "gateway"])
    assert ports.settle_ports(tmp_path / "stack.json", ["web", "gateway"]) == first
    assert len(set(first.values())) == 2


def test_a_port_that_something_else_took_is_replaced_and_the_others_stay(tmp_path: Path, taken: set[int]) -> None:
    first = ports.settle_ports(tmp_path / "stack.json", ["web", "gateway"])
    taken.add(first["web"])
    second = ports.settle_ports(tmp_path / "stack.json", ["web", "gateway"])
    assert second["web"] != first["web"]
    assert second["gateway"] == first["gateway"]


def test_the_port_of_a_process_that_is_left_out_is_remembered(tmp_path: Path, taken: set[int]) -> None:
    first = ports.settle_ports(tmp_path / "stack.json", ["web", "engine"])
    ports.settle_ports(tmp_path / "stack.json", ["web"])
    assert json.loads((tmp_path / "stack.json").read_text())["ports"] == first


def test_ports_lie_below_the_range_of_outgoing_connections(tmp_path: Path, taken: set[int]) -> None:
    chosen = ports.settle_ports(tmp_path / "stack.json", [str(number) for number in range(20)])
    assert all(20000 <= port < 30000 for port in chosen.values())


def test_a_machine_without_a_free_port_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda port: False)
    with pytest.raises(NotProvisioned, match="no free port"):
        ports.free_port()
