"""A small client of the gateway: chats, with the numbers a person wants to see (which version, how fast), and marks."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx

from client.config import clean_url
from client.errors import ServerUnreachable, UnexpectedAnswer, api_error
from client.i18n import _
from client.lines import text_lines
from client.transport import DIRECT, USER_AGENT, problem, public_url, reason_of, undecodable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from client.models import JsonObject

DEFAULT_MARK = "quality"
HEADER_PREFIX = "x-lorekeeper-"
VERSION_HEADER = "x-lorekeeper-version"
REQUEST_ID_HEADER = "x-lorekeeper-request-id"
_CHAT_PATH = "/v1/chat/completions"
_FEEDBACK_PATH = "/v1/feedback"
_DONE = "[DONE]"
_TIMEOUT = httpx.Timeout(180.0, connect=10.0)
_BAD_GATEWAY = 502


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """An answer with the version that gave it; times in milliseconds, `ttft_ms` only when streamed."""

    content: str
    version: str | None
    ttft_ms: float | None
    total_ms: float
    usage: JsonObject | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def request_id(self) -> str | None:
        """What to mark it by."""
        return self.headers.get(REQUEST_ID_HEADER)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What to ask which alias. The tenant follows from the API key."""

    alias: str
    messages: Sequence[dict[str, str]]
    max_tokens: int | None = None
    temperature: float | None = None

    def body(self, *, stream: bool) -> JsonObject:
        """Return the request's JSON."""
        body: JsonObject = {"model": self.alias, "messages": list(self.messages), "stream": stream}
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        if self.temperature is not None:
            body["temperature"] = self.temperature
        return body


class GatewayClient:
    """A connection to one gateway with one API key (scope infer)."""

    def __init__(self, url: str, api_key: str, *, transport: httpx.BaseTransport | None = None) -> None:
        """Connect lazily to the gateway's base URL (without ``/v1``)."""
        headers = {"Authorization": f"Bearer {api_key}", "User-Agent": USER_AGENT}
        gateway = clean_url(url).removesuffix("/v1")
        self._url, self._feedback_url = gateway + _CHAT_PATH, gateway + _FEEDBACK_PATH
        self._http = httpx.Client(headers=headers, timeout=_TIMEOUT, transport=transport, mounts=DIRECT)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def ask(self, request: ChatRequest) -> ChatAnswer:
        """Ask and wait for the whole answer.

        Raises:
            ApiError: the gateway or the engine refused.
            ServerUnreachable: no connection; never tried twice, since each try costs tokens.

        """
        began = time.perf_counter()
        response = self._post(self._url, request.body(stream=False))
        answer = _parsed(response.text)
        headers = _own_headers(response)
        return ChatAnswer(
            content=_content(answer, "message"),
            version=headers.get(VERSION_HEADER),
            ttft_ms=None,
            total_ms=_since(began),
            usage=_usage(answer),
            headers=headers,
        )

    def stream(self, request: ChatRequest, on_text: Callable[[str], None]) -> ChatAnswer:
        """Ask and call `on_text` with each piece as it comes; raises as `ask` does."""
        began = time.perf_counter()
        try:
            with self._http.stream("POST", self._url, json=request.body(stream=True)) as response:
                if not response.is_success:
                    response.read()
                    raise problem(response)
                return _read_stream(response, on_text, began)
        except httpx.TransportError as error:
            raise ServerUnreachable(public_url(httpx.URL(self._url)), reason_of(error)) from error
        except httpx.DecodingError as error:
            raise undecodable(httpx.URL(self._url)) from error

    def mark(self, request_id: str, mark: float, *, name: str = DEFAULT_MARK) -> JsonObject:
        """Say how good the answer to that request was, from 0 (bad) to 1 (good); of several marks the last one counts.

        Raises as `ask` does. It may be sent again: twice the same mark is one.
        """
        body = {"request_id": request_id, "mark": mark, "name": name}
        return _parsed(self._post(self._feedback_url, body).text)

    def _post(self, url: str, body: JsonObject) -> httpx.Response:
        try:
            response = self._http.post(url, json=body)
        except httpx.TransportError as error:
            raise ServerUnreachable(url, reason_of(error)) from error
        except httpx.DecodingError as error:
            raise undecodable(httpx.URL(url)) from error
        if not response.is_success:
            raise problem(response)
        return response


def _read_stream(response: httpx.Response, on_text: Callable[[str], None], began: float) -> ChatAnswer:
    pieces: list[str] = []
    ttft: float | None = None
    usage: JsonObject | None = None
    done = False
    for line in text_lines(response.iter_bytes()):
        data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
        if data == _DONE:
            done = True
        if not data or done:
            continue
        event = _parsed(data)
        usage = _usage(event) or usage
        if piece := _content(event, "delta"):
            ttft = _since(began) if ttft is None else ttft
            pieces.append(piece)
            on_text(piece)
    if not done:
        raise UnexpectedAnswer(_("The answer broke off before its end; ask again."))
    headers = _own_headers(response)
    return ChatAnswer("".join(pieces), headers.get(VERSION_HEADER), ttft, _since(began), usage, headers)


def _parsed(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnexpectedAnswer(_("The gateway's answer isn't JSON; check the address.")) from error
    if not isinstance(value, dict):
        raise UnexpectedAnswer(_("The gateway's answer isn't a JSON object; check the address."))
    failed = value.get("error")
    if isinstance(failed, dict):
        code, detail = failed.get("code") or failed.get("type"), failed.get("message")
        raise api_error(status=_BAD_GATEWAY, code=str(code or "engine_failed"), detail=str(detail or failed))
    return value


def _content(answer: JsonObject, part: str) -> str:
    """Return the text of the first choice; the last event of a stream has none."""
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    message = first.get(part) if isinstance(first, dict) else {}
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else ""


def _usage(answer: JsonObject) -> JsonObject | None:
    usage = answer.get("usage")
    return usage if isinstance(usage, dict) else None


def _own_headers(response: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith(HEADER_PREFIX)}


def _since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)
