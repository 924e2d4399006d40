import json

import httpx
import pytest

from gateway.demand import Demand, DemandState, HttpDemand, read_answer
from tests.unit.gateway.worlds import V1, V2


@pytest.mark.parametrize(
    "state", ["loading", "loaded", "queued", "shed", "no_node", "no_capacity", "refused", "failed"]
)
def test_every_state_of_the_control_plane_is_understood(state: str) -> None:
    answer = read_answer(202, json.dumps({"state": state, "message": "because"}).encode())
    assert (answer.state, answer.message) == (state, "because")


def test_why_a_load_was_refused_is_read_beside_the_state() -> None:
    assert read_answer(202, b'{"state": "no_capacity", "code": "disk_full"}').code == "disk_full"
    assert not read_answer(202, b'{"state": "no_capacity"}').code


@pytest.mark.parametrize("status", [401, 403, 429, 500, 502, 503])
def test_a_control_plane_that_does_not_do_its_work_is_unreachable(status: int) -> None:
    assert read_answer(status, b"").state is DemandState.UNREACHABLE


@pytest.mark.parametrize("status", [400, 404, 409])
def test_a_control_plane_that_says_no_has_refused(status: int) -> None:
    assert read_answer(status, b"").state is DemandState.REFUSED


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"state": "new"}', b'{"state": []}', b"null"])
def test_an_unreadable_answer_is_no_answer(body: bytes) -> None:
    assert read_answer(202, body).state is DemandState.UNREACHABLE


async def test_the_demand_names_the_version_and_carries_the_token() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(202, json={"state": "loading", "message": ""})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        got = await HttpDemand(client=client, web_url="http://web.invalid", token="lk_token").ask(
            Demand(version_id=V1, waiting=2, deadline_ms=900, in_flight=(V2,))
        )
    assert got.state is DemandState.LOADING
    assert seen[0].url == "http://web.invalid/api/v1/demand"
    assert seen[0].headers["authorization"] == "Bearer lk_token"
    assert json.loads(seen[0].content) == {
        "version_id": str(V1),
        "waiting": 2,
        "deadline_ms": 900,
        "in_flight": [str(V2)],
    }


async def test_a_control_plane_out_of_reach_is_an_answer_and_no_exception() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        got = await HttpDemand(client=client, web_url="http://web.invalid", token="lk_token").ask(
            Demand(version_id=V1, waiting=2, deadline_ms=900, in_flight=(V2,))
        )
    assert got.state is DemandState.UNREACHABLE


def test_the_tier_and_the_time_to_come_again_are_read_if_they_are_there() -> None:
    body = {"state": "shed", "message": "", "tier": "disk", "retry_after_s": 7}
    answer = read_answer(202, json.dumps(body).encode())
    assert (answer.tier, answer.retry_after_s) == ("disk", 7)
    odd = read_answer(202, json.dumps({**body, "tier": "moon", "retry_after_s": -1}).encode())
    assert (odd.tier, odd.retry_after_s) == (None, None)


def test_how_long_a_request_may_wait_is_read_if_it_is_there() -> None:
    body: dict[str, object] = {"state": "queued", "message": "", "wait_s": 0.5}
    assert read_answer(202, json.dumps(body).encode()).wait_s == 0.5
    for odd in (None, -1, "soon"):
        assert read_answer(202, json.dumps({**body, "wait_s": odd}).encode()).wait_s is None
