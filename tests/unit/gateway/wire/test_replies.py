import json

import pytest

from gateway import errors
from gateway.wire.asgi import Message, Responder
from gateway.wire.replies import error_document, error_headers, send_error, status_and_type


def every_error() -> list[type[errors.GatewayError]]:
    found = [errors.GatewayError]
    for kind in found:
        found.extend(kind.__subclasses__())
    return found


@pytest.mark.parametrize("kind", every_error())
def test_every_error_has_a_status_and_a_type(kind: type[errors.GatewayError]) -> None:
    status, name = status_and_type(kind("message"))
    assert 400 <= status <= 599
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
    assert error_headers(errors.NoCapacity("x", retry_after_s=10))["retry-after"] == "10"
    assert error_headers(errors.NotAuthenticated("x"))["www-authenticate"] == "Bearer"
    assert error_headers(errors.BodyTooSlow("x"))["connection"] == "close"
    assert "retry-after" not in error_headers(errors.ModelNotFound("x"))


async def test_an_error_is_sent_whole_with_the_request_id() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    responder = Responder(send, request_id="req-1")
    assert not responder.started
    await send_error(responder, errors.ModelNotFound("No."))
    assert responder.started
    headers = dict(sent[0]["headers"])
    assert sent[0]["status"] == 404
    assert headers[b"x-lorekeeper-request-id"] == b"req-1"
    assert int(headers[b"content-length"]) == len(sent[1]["body"])
    assert json.loads(sent[1]["body"])["error"]["code"] == "model_not_found"
    assert not sent[1]["more_body"]
