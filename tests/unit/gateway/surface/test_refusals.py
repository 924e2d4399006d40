import json
from typing import Any

import pytest

from gateway.errors import EndpointNotServed, EngineBusy, EngineFailed, EngineLostVersion, GatewayError
from gateway.surface.refusals import refusal

NAME = "lk-support-tone-v1-acme"


def refused(document: object, status: int = 400) -> dict[str, Any]:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    answer: dict[str, dict[str, Any]] = json.loads(refusal(status, body, names=(f"base:{NAME}", NAME), model="support"))
    return answer["error"]


def test_what_an_engine_says_of_the_request_passes_in_openais_form() -> None:
    inner = {"message": "max_tokens is too large", "type": "BadRequestError", "param": "max_tokens", "code": 400}
    assert refused({"error": inner}) == {**inner, "code": "engine_refused"}
    assert refused({"object": "error", **inner, "code": "x"}, 422) == {**inner, "code": "x"}


def test_the_engines_name_of_the_version_becomes_the_clients_own() -> None:
    for name in (NAME, f"base:{NAME}"):
        assert refused({"error": {"message": f"`{name}` has 2048 tokens"}})["message"] == "`support` has 2048 tokens"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"detail": "Unsupported"}, "Unsupported"),
        (
            {"detail": [{"loc": ["body", "messages"], "msg": "required"}]},
            '[{"loc":["body","messages"],"msg":"required"}]',
        ),
        ({"error": "Input validation error", "error_type": "validation"}, "Input validation error"),
        (b"<html>", "The engine refused the request."),
        ([], "The engine refused the request."),
        ({"error": {"message": ""}}, '{"message":""}'),
    ],
)
def test_other_forms_are_turned_into_it(document: object, message: str) -> None:
    error = refused(document)
    assert error["message"] == message
    assert set(error) == {"message", "type", "param", "code"}
    assert error["param"] is None


@pytest.mark.parametrize(
    ("status", "document", "kind"),
    [
        (404, {"error": {"message": f"The model `{NAME}` does not exist.", "param": "model"}}, EngineLostVersion),
        (404, {"error": {"message": "unknown", "param": "model"}}, EngineLostVersion),
        (404, {"detail": "Not Found"}, EndpointNotServed),
        (429, {"error": "Model is overloaded", "error_type": "overloaded"}, EngineBusy),
        (503, b"", EngineBusy),
        (500, {"error": {"message": "/var/lib/engine: CUDA out of memory"}}, EngineFailed),
        (502, b"<html>10.0.0.1</html>", EngineFailed),
        (302, b"", EngineFailed),
        (204, b"", EngineFailed),
    ],
)
def test_what_an_engine_says_of_itself_stays_here(status: int, document: object, kind: type[GatewayError]) -> None:
    with pytest.raises(kind) as caught:
        refused(document, status)
    assert type(caught.value) is kind
    assert not [secret for secret in (NAME, "/var", "10.0", "CUDA") if secret in caught.value.message]
