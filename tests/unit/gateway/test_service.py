import logging
from functools import partial
from typing import Any, cast

import pytest

from gateway.metrics.board import Board
from gateway.routing.current import CurrentSnapshot
from gateway.service import Service
from gateway.wire.body import BodyLimits
from gateway.wire.connection import Request, Responder
from tests.unit.gateway.connections import FakeConnection
from tests.unit.gateway.paths import Gateway
from tests.unit.gateway.worlds import World


async def test_a_client_that_leaves_is_no_failure_of_the_gateway(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gateway.service.Responder", partial(Responder, patience_s=0.01))
    service = Service(
        current=CurrentSnapshot(),
        path=Gateway(World()).path,
        records=cast("Any", None),
        feedback=cast("Any", None),
        limits=BodyLimits(100, 5, 1.0),
        is_alive=lambda: True,
        facts=dict,
        board=Board(token="", adapter_of=lambda _: None, gauges=dict, breakers=dict),
        is_draining=lambda: False,
    )
    connection = FakeConnection(is_slow=True)
    with caplog.at_level(logging.WARNING):
        await service.handle(Request("GET", "/healthz", {}, connection))
    assert connection.is_dropped
    assert not caplog.records
