import json

import pytest

from gateway import errors
from gateway.wire.connection import Responder
from gateway.wire.replies import error_document, error_headers, send_error, status_and_type
from tests.unit.gateway.connections import FakeConnection


def every_error() -> list[type[errors.GatewayError]]:
    found = [errors.GatewayError]
    for kind in found:
        found.extend(kind.__subclasses__())
    return found


@pytest.mark.parametrize("kind", every_error())
def test_every_error_has_a_status_and_a_type(kind: type[errors.GatewayError]) -> None:
    status, name = status_and_type(kind("message"))
    assert 400 <= status <= 599
    if status == 429:
        assert name  # of what there was too much
    else:
        assert name == ("invalid_request_error" if status < 500 else "server_error")


@pytest.mark.parametrize("kind", every_error())
def test_every_error_has_a_code_of_its_own_and_stands_in_the_tree(kind: type[errors.GatewayError]) -> None:
    assert [other.__name__ for other in every_error() if other.code == kind.code] == [kind.__name__]
    assert kind.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.BadJson("x"), 400),
        (errors.TokenExpired("x"), 401),
        (errors.VersionRevoked("x"), 403),
        (errors.ModelNotFound("x"), 404),
        (errors.NoCapacity("x"), 503),
        (errors.VersionMismatch("x"), 502),
        (errors.EngineSilent("x"), 504),
    ],
)
def test_the_status_says_whose_fault_it_is(error: errors.GatewayError, status: int) -> None:
    assert status_and_type(error)[0] == status


def test_an_error_is_told_in_openais_form() -> None:
    assert error_document(errors.ModelNotFound("No.", param="model")) == {
        "error": {"message": "No.", "type": "invalid_request_error", "param": "model", "code": "model_not_found"}
    }


def test_headers_say_when_to_try_again_and_how_to_authenticate() -> None:
    assert error_headers(errors.NoCapacity("x", retry_after_s=10))[b"retry-after"] == b"10"
    assert error_headers(errors.NotAuthenticated("x"))[b"www-authenticate"] == b"Bearer"
    assert b"retry-after" not in error_headers(errors.ModelNotFound("x"))


@pytest.mark.parametrize(("error", "closes"), [(errors.BodyTooSlow("x"), True), (errors.BodyTooLarge("x"), False)])
async def test_a_connection_whose_body_may_never_end_is_closed(error: errors.GatewayError, closes: bool) -> None:
    connection = FakeConnection()
    await send_error(Responder(connection, request_id="req-1"), error)
    assert connection.closes == closes


async def test_an_error_is_sent_whole_with_the_request_id() -> None:
    connection = FakeConnection()
    responder = Responder(connection, request_id="req-1")
    assert not responder.started
    await send_error(responder, errors.ModelNotFound("No."))
    assert responder.started
    assert connection.status == 404
    assert connection.headers[b"x-lorekeeper-request-id"] == b"req-1"
    assert json.loads(connection.parts[0])["error"]["code"] == "model_not_found"
    assert connection.is_complete
