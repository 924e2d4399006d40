"""Gateways run on uvloop, whose sockets differ from asyncio's in what they tell and when: the promises hold there."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from gateway.upstream.llhttp import llhttp_upstream
from gateway.upstream.pool import PoolLimits
from gateway.upstream.ports import Upstream
from tests.integration.gateway.upstream import test_clients as clients

Scenario = Callable[[Upstream], Awaitable[None]]

SCENARIOS: list[Scenario] = [
    clients.test_a_call_arrives_as_it_was_made,
    clients.test_calls_one_after_another_share_a_connection_and_calls_at_once_do_not,
    clients.test_parts_of_a_stream_arrive_one_by_one,
    clients.test_a_connection_closed_while_idle_is_replaced,
    clients.test_a_connection_closed_under_a_call_before_any_byte_is_replaced_once,
    clients.test_a_new_connection_that_is_closed_without_an_answer_is_not_replaced,
    clients.test_half_an_answer_is_never_a_whole_one,
    clients.test_an_engine_that_is_not_there_is_unreachable,
    clients.test_an_engine_is_held_up_while_nobody_reads,
    clients.test_an_engine_is_held_up_while_what_it_sends_is_not_taken,
    clients.test_a_body_that_the_engine_reads_slowly_arrives_whole,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_it_holds_on_uvloop(scenario: Scenario) -> None:
    async def play() -> None:
        async with llhttp_upstream(PoolLimits(connections=10, silence_s=5.0)) as upstream:
            await scenario(upstream)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(play())
