import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bench.cache.ledger import Ledger
from bench.cache.plan import Plan
from client.errors import LorekeeperError


def amount(used: int) -> SimpleNamespace:
    return SimpleNamespace(used=used, ceiling=2)


class Admin:
    """A registry with one tenant, whose quotas are told by `quotas`."""

    def __init__(self, quotas: Callable[[], list[Any]]) -> None:
        self.cache_policies = SimpleNamespace(quotas=lambda _base: quotas())
        self.nodes = SimpleNamespace(get=lambda _name: SimpleNamespace(residencies=()))


def kept(quotas: Callable[[], list[Any]]) -> Ledger:
    """The ledger after it was left."""
    admin: Any = Admin(quotas)
    with Ledger(admin, Plan()) as ledger:
        while ledger.looks + ledger.unanswered < 3:
            time.sleep(0.001)
    return ledger


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.cache.ledger._EVERY_S", 0.001)


def used(slots: int) -> list[Any]:
    return [SimpleNamespace(tenant="acme", gpu_slots=amount(slots), cpu_bytes=amount(1))]


def test_quotas_that_nobody_could_look_at_were_not_held() -> None:
    def unanswered() -> list[Any]:
        raise LorekeeperError("no answer")

    ledger = kept(unanswered)
    assert ledger.faults() == [f"nobody knows whether quotas were held: none of {ledger.unanswered} looks was answered"]
    assert f"0 looks ({ledger.unanswered} more were not answered)" in ledger.told()


def test_quotas_that_were_held_are_no_fault() -> None:
    ledger = kept(lambda: used(2))
    assert ledger.faults() == []
    assert "gpu_slots 100%" in ledger.told()


def test_what_is_above_its_ceiling_is_a_fault_with_its_amounts() -> None:
    assert "acme gpu_slots: 3 of 2" in kept(lambda: used(3)).faults()
