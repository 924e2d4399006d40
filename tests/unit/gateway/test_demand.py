import json

import httpx
import pytest

from gateway.demand import DemandState, HttpDemand, read_answer
from tests.unit.gateway.worlds import V1


@pytest.mark.parametrize("state", ["loading", "loaded", "no_node", "no_capacity", "refused", "failed"])
def test_every_state_of_the_control_plane_is_understood(state: str) -> None:
    answer = read_answer(202, json.dumps({"state": state, "message": "because"}).encode())
    assert (answer.state, answer.message) == (state, "because")


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
        got = await HttpDemand(client=client, web_url="http://web.invalid", token="lk_token").ask(V1)
    assert got.state is DemandState.LOADING
    assert seen[0].url == "http://web.invalid/api/v1/demand"
    assert seen[0].headers["authorization"] == "Bearer lk_token"
    assert json.loads(seen[0].content) == {"version_id": str(V1)}


async def test_a_control_plane_out_of_reach_is_an_answer_and_no_exception() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        got = await HttpDemand(client=client, web_url="http://web.invalid", token="lk_token").ask(V1)
    assert got.state is DemandState.UNREACHABLE
