"""SGLang: loads and unloads at runtime, with pins. The engine must run with --enable-lora and one data-parallel worker.

Written after its source (`entrypoints/http_server.py`, `entrypoints/openai/serving_base.py`,
`managers/tokenizer_communicator_mixin.py`, `lora/lora_manager.py`, `lora/lora_registry.py`) and its LoRA guide.

- A request names an adapter as `base:adapter`; the base's own name therefore has no colon.
- An unloaded adapter comes back with the next request that names it: SGLang remembers each path it ever loaded from. So
  revocation is enforced where requests are routed, and this driver asks for no name that isn't listed.
- An unload first makes the name unknown, then waits without limit for the requests that use it, and holds up all other
  loads and unloads meanwhile.
"""

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from http import HTTPStatus
from pathlib import Path

import httpx

from workers.node.engines import texts
from workers.node.engines.book import Book
from workers.node.engines.capabilities import CAPABILITIES
from workers.node.engines.connection import (
    LOAD_TIMEOUT_S,
    Connection,
    EngineGoneError,
    EngineSlowError,
    object_of,
    reason_of,
)
from workers.node.engines.model_cards import adapters_in
from workers.node.engines.ports import Boot, EngineTier, LoadedAdapter, Reading
from workers.node.engines.readings import echoed_reading, echoed_request
from workers.node.errors import EngineAwayError, EngineBusyError, EngineRefusedError

READ_TIMEOUT_S = 60.0
DRAIN_TIMEOUT_S = 30.0

_THERE_ALREADY = re.compile(r"already loaded|already exists", re.IGNORECASE)
_NOT_THERE = re.compile(r"does not exist", re.IGNORECASE)
_RULES = (
    texts.full(r"not allowed to pin all slots|when trying to evict LRU"),
    texts.refused(
        r"incompatible with the current|doesn't support|not enabled|dp_size must be 1"
        r"|No such file|adapter_config|deserializing|Expecting value"
    ),
    texts.away(r"timed out|cancelled|scheduler"),
)


class SglangEngine:
    """One SGLang server at `url`; its base answers to `base_model`."""

    capabilities = CAPABILITIES["sglang"]

    def __init__(
        self,
        url: str,
        *,
        base_model: str,
        book: Book,
        timeout_s: float = 5.0,
        load_timeout_s: float = LOAD_TIMEOUT_S,
        drain_s: float = DRAIN_TIMEOUT_S,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Say for how many seconds an unload may wait for the requests that use the adapter."""
        self._connection = Connection(url, timeout_s=timeout_s, transport=transport)
        self._base_model = base_model
        self._book = book
        self._load_timeout_s = load_timeout_s
        self._drain_s = drain_s

    def close(self) -> None:
        self._connection.close()

    def boot(self) -> Boot:
        """SGLang tells no time of its start, but draws a new random seed, unless it was given one.

        With a given seed a restart shows as a refused connection; and the names it has forgotten show in any case.
        """
        try:
            response = self._connection.send("GET", "/server_info")
            if response.status_code == HTTPStatus.NOT_FOUND:  # its name in older versions
                response = self._connection.ask("/get_server_info")
            info = object_of(response)
            healthy = self._connection.is_healthy()
        except EngineGoneError:
            self._book.end_life()
            raise
        return Boot(id=self._book.observe(mark=str(info.get("random_seed", ""))), healthy=healthy)

    def list_loaded(self) -> tuple[LoadedAdapter, ...]:
        """From GET /v1/models: what is loaded in CPU memory, with its path."""
        return adapters_in(object_of(self._connection.ask("/v1/models")))

    def load(self, *, name: str, path: Path, pinned: bool = False) -> None:
        """Synchronous in SGLang. Errors are 400 with `error_message`; a pin beyond all slots but one is refused."""
        body = {"lora_name": name, "lora_path": str(path), "pinned": pinned}
        response = self._connection.send("POST", "/load_lora_adapter", body, timeout_s=self._load_timeout_s)
        if response.is_success:
            return None
        text = _reason(response)
        if response.status_code == HTTPStatus.BAD_REQUEST and _THERE_ALREADY.search(text):
            return self._expect_root(name, path)
        if response.status_code in {HTTPStatus.BAD_REQUEST, HTTPStatus.INTERNAL_SERVER_ERROR}:
            raise texts.classed(text, _RULES)
        raise texts.error_of(response.status_code, text, _RULES)

    def unload(self, name: str) -> None:
        """Forget the name at once, and free its memory when no request uses it any more.

        Raises:
            EngineBusyError: some still did when time was up. SGLang goes on waiting; asking again waits on.

        """
        try:
            body = {"lora_name": name}
            response = self._connection.send("POST", "/unload_lora_adapter", body, timeout_s=self._drain_s)
        except EngineSlowError as error:
            raise EngineBusyError(f"requests have been using {name} for {self._drain_s:g} s") from error
        if response.is_success or _NOT_THERE.search(_reason(response)):
            return
        raise texts.error_of(response.status_code, _reason(response), _RULES)

    def read_prompt(self, *, model: str, prompt: str) -> Reading:
        """An echoed completion of one token; of a name that isn't listed nothing is asked, it could come back."""
        asked = model if model == self._base_model else f"{self._base_model}:{model}"
        if asked != model and model not in {adapter.name for adapter in self.list_loaded()}:
            raise EngineAwayError(f"the engine does not know {model}")
        response = self._connection.send(
            "POST", "/v1/completions", echoed_request(asked, prompt), timeout_s=READ_TIMEOUT_S
        )
        if response.status_code == HTTPStatus.BAD_REQUEST and "loaded" in response.text:
            raise EngineAwayError(f"the engine does not know {model}: {_reason(response)}")
        if not response.is_success:
            raise texts.error_of(response.status_code, _reason(response), _RULES)
        reading = echoed_reading(object_of(response))
        return Reading(model if reading.model == asked else reading.model, reading.log_probabilities)

    def steady(self) -> AbstractContextManager[None]:
        """A load restarts nothing."""
        return nullcontext()

    def in_use(self) -> frozenset[str] | None:
        """Not told, and not needed: an unload waits itself."""
        return None

    def tiers(self) -> Mapping[str, EngineTier] | None:
        """Not told: what is listed is in CPU memory, which of it is in a slot as well is the engine's own business."""
        return None

    def progress(self) -> float | None:
        """Not told, unless it was started with metrics."""
        return None

    def _expect_root(self, name: str, path: Path) -> None:
        roots = [adapter.root for adapter in self.list_loaded() if adapter.name == name]
        if roots != [str(path)]:
            raise EngineRefusedError(f"the engine has {name} from another folder: {', '.join(roots) or 'unknown'}")


def _reason(response: httpx.Response) -> str:
    """Its routes for adapters, for OpenAI's clients and of its own each have another place for the reason."""
    return reason_of(response, "error_message", "message", "error.message")
