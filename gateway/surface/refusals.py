"""An engine's answer that isn't a success, in the form in which a client may see it.

What an engine says about the request (4xx) passes in OpenAI's form, with the name under which engines know the version
turned back into the client's own. What it says about itself (5xx) stays here: it names paths, addresses and adapters.
"""

from typing import TypedDict

import orjson

from gateway.errors import EndpointNotServed, EngineBusy, EngineFailed, EngineLostVersion

_NOT_FOUND = 404
_BUSY = frozenset({429, 503})
_SERVER_ERROR = 500
_LONGEST_MESSAGE = 8192


class _Document(TypedDict):
    message: str
    type: str | None
    param: str | None
    code: str | None


def refusal(status: int, body: bytes, *, names: tuple[str, ...], model: str) -> bytes:
    """The JSON document for a client whose request the engine refused with `status`.

    `names` is what the engine calls the version, the longest first; `model` is what the client calls it.

    Raises EngineLostVersion where the engine doesn't know the version, EndpointNotServed where it has no such path,
    EngineBusy for 429 and 503, EngineFailed for every other failure of its own.
    """
    if status in _BUSY:
        message = "The engine is overloaded."
        raise EngineBusy(message, retry_after_s=1)
    if status >= _SERVER_ERROR or status < 400:  # noqa: PLR2004  the class of the status
        message = f"The engine failed with status {status}."
        raise EngineFailed(message)
    document = _error(body)
    if status == _NOT_FOUND:
        _tell_apart(document, names)
    for name in names:
        document["message"] = document["message"].replace(name, model)
    return orjson.dumps({"error": document})


def _tell_apart(document: _Document, names: tuple[str, ...]) -> None:
    if document["param"] == "model" or any(name in document["message"] for name in names):
        message = "The engine doesn't know the version any more."
        raise EngineLostVersion(message)
    message = "The engine behind this model doesn't serve this path."
    raise EndpointNotServed(message)


def _error(body: bytes) -> _Document:
    """OpenAI's four fields, from OpenAI's own form, or from FastAPI's `detail`, or from TGI's and LoRAX's flat one."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    found = document if isinstance(document, dict) else {}
    inner = found.get("error")
    if isinstance(inner, dict):
        found = inner
    message = found.get("message") or found.get("detail") or inner or "The engine refused the request."
    return {
        "message": (message if isinstance(message, str) else orjson.dumps(message).decode())[:_LONGEST_MESSAGE],
        "type": _text(found.get("type") or found.get("error_type"), "invalid_request_error"),
        "param": _text(found.get("param"), None),
        "code": _text(found.get("code"), "engine_refused"),
    }


def _text(value: object, default: str | None) -> str | None:
    return value if isinstance(value, str) and value else default
