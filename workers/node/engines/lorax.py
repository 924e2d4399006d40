"""LoRAX: loads an adapter with the first request that names it, and never unloads one when told to.

Written after its source (`router/src/server.rs`, `router/src/loader.rs`, `router/src/adapter.rs`,
`server/lorax_server/server.py`, `server/lorax_server/utils/sources/local.py`), its REST reference and its pages on
adapters, metrics and HTTP status codes.

- A request names an adapter by its folder: `adapter_id` with `adapter_source: local`. So warming is a request of one
  token. The engine runs with HUGGINGFACE_HUB_CACHE set to the folder of the node's cache that holds the versions: then
  the folder's own name is enough, and gateways can ask for it without knowing where the node keeps its files. An
  adapter that is named in two ways would be two adapters to it.
- It holds adapters on the GPU as its memory allows, drops the others, and reads the folder again when it is named
  again; a folder that is gone is an error of that request alone (424).
- Nothing lists the adapters, nothing unloads one: what `unload` forgets is only no longer asked for.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import httpx

from workers.node.engines import texts
from workers.node.engines.book import Book
from workers.node.engines.capabilities import CAPABILITIES
from workers.node.engines.connection import LOAD_TIMEOUT_S, Connection, EngineGoneError, object_of, reason_of
from workers.node.engines.ports import Boot, EngineTier, LoadedAdapter, Reading
from workers.node.engines.prometheus import total
from workers.node.engines.readings import prefilled_reading, prefilled_request
from workers.node.errors import EngineAwayError, EngineError, EngineRefusedError

READ_TIMEOUT_S = 60.0
WARM_TEXT = "Hello"

_RULES = (
    texts.full(r"memory fraction|not enough memory"),
    texts.refused(
        r"No local weights found|not found in|No such file|not compatible|unsupported|not support"
        r"|deserializing|Expecting value"
    ),
    texts.away(r"shard|transport|connection|unavailable|cancelled|timed out"),
)


class LoraxEngine:
    """One LoRAX server at `url`; `base_model` is what the agent calls its base."""

    capabilities = CAPABILITIES["lorax"]

    def __init__(
        self,
        url: str,
        *,
        base_model: str,
        book: Book,
        timeout_s: float = 5.0,
        load_timeout_s: float = LOAD_TIMEOUT_S,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = Connection(url, timeout_s=timeout_s, transport=transport)
        self._base_model = base_model
        self._book = book
        self._load_timeout_s = load_timeout_s

    def close(self) -> None:
        self._connection.close()

    def boot(self) -> Boot:
        """LoRAX tells no time of its start: a refused connection, or a count of requests that fell, is a new life."""
        return Boot(id=self._life(), healthy=self._connection.is_healthy())

    def list_loaded(self) -> tuple[LoadedAdapter, ...]:
        """What this life of the engine was asked to load, by this driver's book."""
        return self._book.listed()

    def load(self, *, name: str, path: Path, pinned: bool = False) -> None:  # noqa: ARG002  # it has no way to pin
        """A request of one token: LoRAX answers it when the adapter is on the GPU."""
        self._life()  # what is noted belongs to the one that answers now
        known = self._book.root_of(name)
        if known not in {None, str(path)}:
            raise EngineRefusedError(f"the engine has {name} from another folder: {known}")
        body = prefilled_request(WARM_TEXT, **_named(str(path)))
        self._generate(body, timeout_s=self._load_timeout_s)
        self._book.add(name, str(path))

    def unload(self, name: str) -> None:
        """Ask for it no more; LoRAX drops it when it needs the place."""
        self._book.forget(name)

    def read_prompt(self, *, model: str, prompt: str) -> Reading:
        """A `/generate` of one token with the prompt's details, which says nothing of who answered."""
        root = self._book.root_of(model)
        if model != self._base_model and root is None:
            raise EngineAwayError(f"the engine does not know {model}")
        adapter = {} if root is None else _named(root)
        return prefilled_reading(model, self._generate(prefilled_request(prompt, **adapter), timeout_s=READ_TIMEOUT_S))

    def steady(self) -> AbstractContextManager[None]:
        """A load restarts nothing."""
        return nullcontext()

    def in_use(self) -> frozenset[str] | None:
        """LoRAX only tells how many requests there were."""
        return None

    def tiers(self) -> Mapping[str, EngineTier] | None:
        """Not told."""
        return None

    def progress(self) -> float | None:
        """Not told: its counters change when a request ends."""
        return None

    def _life(self) -> str:
        since = self._book.count
        try:
            count = total(self._connection.ask("/metrics").text, "lorax_request_count")
        except EngineGoneError:
            self._book.end_life()
            raise
        return self._book.observe(count=count, since=since)

    def _generate(self, body: Mapping[str, Any], *, timeout_s: float) -> dict[str, Any]:
        before = self._book.count
        response = self._connection.send("POST", "/generate", body, timeout_s=timeout_s)
        self._book.saw(before + 1)
        if not response.is_success:
            raise _error(response)
        return object_of(response)


def _named(root: str) -> dict[str, str]:
    return {"adapter_id": Path(root).name, "adapter_source": "local"}


def _error(response: httpx.Response) -> EngineError:
    """424 is what LoRAX says of everything that its model server could not do, bad adapters first of all."""
    text = reason_of(response, "error")
    if response.status_code == httpx.codes.FAILED_DEPENDENCY:
        return texts.classed(text, _RULES)
    return texts.error_of(response.status_code, text, _RULES)
