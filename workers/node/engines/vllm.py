"""vLLM, as version 0.32 behaves. The engine must run with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True and one API server."""

import math
import re
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from workers.node.bounded import PLAIN, send_bounded
from workers.node.engines.ports import Boot, Capabilities, LoadedAdapter, Reading
from workers.node.errors import EngineAwayError, EngineError, EngineFailedError, EngineFullError, EngineRefusedError

LOAD_TIMEOUT_S = 300.0
READ_TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 5.0
MAX_MESSAGE = 400

_START_TIME = re.compile(r"^process_start_time_seconds(?:\{[^}]*\})? (\S+)$", re.MULTILINE)
_FULL = re.compile(r"out of memory|no free lora slots|number of adapters|GPU model slots|GPU LoRA slots", re.IGNORECASE)
_DYING = re.compile(r"EngineCore|EngineDead|engine is dead|timed out|cancelled", re.IGNORECASE)
# Said by its checks of configuration and files, which come before anything is put into a slot.
_REFUSED = re.compile(r"max_lora_rank|not (?:yet )?support|deserializing|Expecting|PEFTHelper|No adapter found")
_NOT_A_NUMBER = re.compile(r"Out of range float values", re.IGNORECASE)
_BUSY = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


class VllmEngine:
    """One vLLM server at `url`, which comes from the agent's own settings."""

    capabilities = Capabilities(hot_load=True, hot_unload=True, lists_adapters=True, log_probabilities=True)

    def __init__(self, url: str, *, timeout_s: float = 5.0, transport: httpx.BaseTransport | None = None) -> None:
        # A proxy of the environment has no business between the agent and its own engine.
        self._http = httpx.Client(base_url=url, timeout=timeout_s, headers=PLAIN, trust_env=False, transport=transport)
        self._timeout_s = timeout_s

    def close(self) -> None:
        self._http.close()

    def boot(self) -> Boot:
        """The start time of the API server's process is the id of its life."""
        match = _START_TIME.search(self._ask("GET", "/metrics").text)
        if match is None:
            raise EngineAwayError("the engine's /metrics has no process_start_time_seconds")
        return Boot(id=f"vllm-{match.group(1)}", healthy=self._send("GET", "/health").is_success)

    def list_loaded(self) -> tuple[LoadedAdapter, ...]:
        """From GET /v1/models: what has a parent is an adapter; its root is the path."""
        cards = _object(self._ask("GET", "/v1/models")).get("data")
        if not isinstance(cards, list):
            raise EngineAwayError("the engine's list of models has an unknown form")
        return tuple(
            LoadedAdapter(name=str(card.get("id")), root=str(card.get("root")))
            for card in cards
            if isinstance(card, dict) and card.get("parent") is not None
        )

    def load(self, *, name: str, path: Path) -> None:
        """Synchronous in vLLM. The text of its error is all that tells why: nearly every bad adapter is a 500."""
        body = {"lora_name": name, "lora_path": str(path)}
        response = self._send("POST", "/v1/load_lora_adapter", body, timeout_s=LOAD_TIMEOUT_S)
        if response.status_code == HTTPStatus.BAD_REQUEST and "already been loaded" in response.text:
            return self._expect_root(name, path)
        if not response.is_success:
            raise _load_error(response)
        return None

    def unload(self, name: str) -> None:
        """Only forgets the name: no memory is freed, and requests in flight still finish, from disk if need be."""
        response = self._send("POST", "/v1/unload_lora_adapter", {"lora_name": name})
        if response.status_code == HTTPStatus.NOT_FOUND and "cannot be found" in response.text:
            return
        if not response.is_success:
            raise _error(response)

    def read_prompt(self, *, model: str, prompt: str) -> Reading:
        """An echoed completion of one token: the log-probabilities of the prompt's own tokens can be compared."""
        body = {"model": model, "prompt": prompt, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 0}
        response = self._send("POST", "/v1/completions", body, timeout_s=READ_TIMEOUT_S)
        if response.status_code == HTTPStatus.BAD_REQUEST and _NOT_A_NUMBER.search(response.text):
            return Reading(model=model, log_probabilities=(math.nan,))
        if response.status_code == HTTPStatus.NOT_FOUND:
            raise EngineAwayError(f"the engine does not know {model}: {_message(response)}")
        if not response.is_success:
            raise _error(response)
        return _reading(_object(response))

    def _expect_root(self, name: str, path: Path) -> None:
        roots = [adapter.root for adapter in self.list_loaded() if adapter.name == name]
        if roots != [str(path)]:
            raise EngineRefusedError(f"the engine has {name} from another folder: {', '.join(roots) or 'unknown'}")

    def _ask(self, method: str, path: str) -> httpx.Response:
        response = self._send(method, path)
        if not response.is_success:
            raise EngineAwayError(f"the engine answers {path} with HTTP {response.status_code}")
        return response

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, timeout_s: float | None = None
    ) -> httpx.Response:
        seconds = timeout_s or self._timeout_s
        timeout = httpx.Timeout(seconds, connect=CONNECT_TIMEOUT_S)
        request = self._http.build_request(method, path, json=body, timeout=timeout)
        try:
            return send_bounded(self._http, request, seconds=seconds + CONNECT_TIMEOUT_S)
        except httpx.HTTPError as error:
            raise EngineAwayError(f"the engine does not answer: {type(error).__name__}") from error


def _load_error(response: httpx.Response) -> EngineError:
    if response.status_code == HTTPStatus.NOT_FOUND and "No adapter found" not in response.text:
        return EngineRefusedError("the engine can't load adapters: start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True")
    return _error(response)


def _error(response: httpx.Response) -> EngineError:
    text = f"HTTP {response.status_code}: {_message(response)}"
    if response.status_code in _BUSY or (response.is_server_error and _DYING.search(text)):
        return EngineAwayError(text)
    if response.is_server_error and _FULL.search(text):
        return EngineFullError(text)
    if response.is_server_error and not _REFUSED.search(text):
        return EngineFailedError(text)
    return EngineRefusedError(text)


def _message(response: httpx.Response) -> str:
    """The reason in the error object, in one printable line."""
    try:
        text = str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        text = response.text
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:MAX_MESSAGE]


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        value = response.json()
    except (ValueError, RecursionError) as error:
        raise EngineAwayError("the engine answers something else than JSON") from error
    if not isinstance(value, dict):
        raise EngineAwayError("the engine answers something else than a JSON object")
    return value


def _reading(answer: Mapping[str, Any]) -> Reading:
    try:
        prompt_tokens = int(answer["usage"]["prompt_tokens"])
        values = answer["choices"][0]["logprobs"]["token_logprobs"][1:prompt_tokens]
        numbers = tuple(math.nan if value is None else float(value) for value in values)
        return Reading(model=str(answer["model"]), log_probabilities=numbers)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise EngineRefusedError("the engine's completion has no log-probabilities of the prompt") from error
