"""A client's request as the call that goes to an engine."""

import re

import orjson

from gateway.path.targets import Ask
from gateway.routing.choose import Candidate
from gateway.upstream.ports import EngineCall

# What else a client sends stays here: an engine's headers are none of its business.
_FORWARDED = ("accept", "traceparent", "tracestate")
# Printable ASCII without blanks at its ends: with others the call fails as if the engine had.
_FORWARDABLE = re.compile(r"[!-~](?:[ -~]{0,1022}[!-~])?")


def engine_call(ask: Ask, candidate: Candidate, *, request_id: str) -> EngineCall:
    """The call: the client's body, but for the model, which is what this engine calls the version."""
    form = candidate.form
    body = {**ask.body, **ask.endpoint.fixed, **form.fields, "model": form.model}
    return EngineCall(
        candidate.node.engine_url, ask.endpoint.path, _headers(ask, request_id=request_id), orjson.dumps(body)
    )


def _headers(ask: Ask, *, request_id: str) -> dict[str, str]:
    headers = {"content-type": "application/json", "x-request-id": request_id}
    asked = ask.headers
    for name in _FORWARDED:
        value = asked.get(name)
        if value is not None and _FORWARDABLE.fullmatch(value):
            headers[name] = value
    return headers
