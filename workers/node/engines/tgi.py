"""Text Generation Inference: its adapters are given to it at its start, so that a change of the set is a restart.

Written after its source (`router/src/server.rs`, `server/text_generation_server/utils/adapter.py`,
`server/text_generation_server/models/flash_causal_lm.py`, `launcher/src/main.rs`), `docs/openapi.json` and its pages
on LoRA and on metrics.

- `LORA_ADAPTERS=name=/path,…` names the adapters; one that can't be loaded keeps the whole server from starting.
- A request chooses one by `adapter_id`. An id that isn't there is answered by the base, without a word, and no answer
  says which adapter gave it: only a probe tells. Nothing lists the adapters.
- Log-probabilities of prompts need `--enable-prefill-logprobs`; a NaN is a null.

This driver keeps the set in a file of one line, `LORA_ADAPTERS=…`, from which the operator's unit starts the engine
(systemd's EnvironmentFile=, docker's --env-file). It waits until nothing runs, has the engine restarted, and puts the
former set back if it doesn't come up. Such a restart is no new life of the engine: it has afterwards what it had. An
unload only takes effect with the next start; TGI keeps the weights and goes on answering to the name until then, but
reads no file again.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock

import httpx

from workers.node.durable import write_durably
from workers.node.engines import texts
from workers.node.engines.batches import Batcher
from workers.node.engines.book import Book
from workers.node.engines.capabilities import CAPABILITIES
from workers.node.engines.connection import Connection, EngineGoneError, object_of, reason_of
from workers.node.engines.ports import Boot, EngineTier, LoadedAdapter, Reading, Restarter
from workers.node.engines.prometheus import total
from workers.node.engines.readings import prefilled_reading, prefilled_request
from workers.node.errors import EngineAwayError, EngineError, EngineRefusedError, RestartError

READ_TIMEOUT_S = 60.0

_RULES = (texts.full(r"not enough memory"), texts.away(r"shard|connection|cancelled|timed out"))
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: how long a batch collects, how long running requests are waited for, and how long a start may take."""

    window_s: float = 2.0
    drain_s: float = 30.0
    start_s: float = 600.0
    poll_s: float = 0.2


class TgiEngine:
    """One TGI server at `url`; its base answers to `base_model`. `set_file` is what the engine is started with."""

    capabilities = CAPABILITIES["tgi"]

    def __init__(
        self,
        url: str,
        *,
        base_model: str,
        book: Book,
        set_file: Path,
        restarter: Restarter,
        pace: Pace | None = None,
        timeout_s: float = 5.0,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take a `book` that starts with what is wanted."""
        self._connection = Connection(url, timeout_s=timeout_s, transport=transport)
        self._base_model = base_model
        self._book = book
        self._set_file = set_file
        self._restarter = restarter
        self._pace = pace or Pace()
        self._sleep = sleep
        self._clock = clock
        self._batcher = Batcher(self._apply, window_s=self._pace.window_s, sleep=sleep)
        self._suspects: set[str] = set()
        self._restarting = Event()
        self._setting = Lock()
        self._starts = 0
        self._take_back()

    def close(self) -> None:
        self._connection.close()

    def boot(self) -> Boot:
        """TGI tells no time of its start: a refused connection, or a count of requests that fell, is a new life."""
        if self._restarting.is_set():
            raise EngineAwayError("the engine is being restarted")
        since = self._book.count
        try:
            count = total(self._connection.ask("/metrics").text, "tgi_request_count")
            healthy = self._connection.is_healthy()
        except EngineGoneError:
            self._book.end_life()
            raise
        return Boot(id=self._book.observe(count=count, since=since), healthy=healthy)

    @property
    def available(self) -> bool:
        """Whether there is a way to have it restarted."""
        return self._restarter.available

    def restart(self) -> None:
        """Have it restarted as it is, between two changes of its set: whoever answers next is another life.

        A restart for a change that was under way when this was asked for will do.

        Raises:
            RestartError: it failed.

        """
        starts = self._starts
        with self._batcher.between(), self._away():
            if self._starts == starts:
                self._run_hook()
            self._book.end_life()

    def list_loaded(self) -> tuple[LoadedAdapter, ...]:
        """What the engine was started with and is still to have, by this driver's book."""
        return self._book.listed()

    def load(self, *, name: str, path: Path, pinned: bool = False) -> None:  # noqa: ARG002  # all are in slots always
        """Restart the engine with this adapter too, together with what else is asked for within the window."""
        root = str(path)
        if {"=", ","} & {*name, *root}:
            raise EngineRefusedError(f"TGI can't be given {root!a}: it holds a comma or an equals sign")
        known = self._book.root_of(name)
        if known == root:
            return
        if known is not None:
            raise EngineRefusedError(f"the engine has {name} from another folder: {known}")
        if not (path / "adapter_config.json").is_file():
            raise EngineRefusedError(f"No adapter found: {root} has no adapter_config.json")
        self._batcher.submit(name, root, alone=name in self._suspects)

    def unload(self, name: str) -> None:
        """Leave it out of the next start."""
        with self._setting:
            self._book.forget(name)
            self._write_set(self._book.wanted)

    def read_prompt(self, *, model: str, prompt: str) -> Reading:
        """A `/generate` of one token with the prompt's details, which says nothing of who answered."""
        if model != self._base_model and self._book.root_of(model) is None:
            raise EngineAwayError(f"the engine does not know {model}: it would answer as the base")
        adapter = {} if model == self._base_model else {"adapter_id": model}
        body, before = prefilled_request(prompt, **adapter), self._book.count
        response = self._connection.send("POST", "/generate", body, timeout_s=READ_TIMEOUT_S)
        self._book.saw(before + 1)
        if not response.is_success:
            raise texts.error_of(_status(response), reason_of(response, "error"), _RULES)
        return prefilled_reading(model, object_of(response))

    def steady(self) -> AbstractContextManager[None]:
        """Between two changes of the set: who comes meanwhile shares the next one."""
        return self._batcher.between()

    def in_use(self) -> frozenset[str] | None:
        """TGI only tells how many requests run."""
        return None

    def tiers(self) -> Mapping[str, EngineTier] | None:
        """All of them are on the GPU, always."""
        return None

    def progress(self) -> float | None:
        """Not told: its counters change when a request ends."""
        return None

    def _apply(self, new: Mapping[str, str]) -> Mapping[str, EngineError]:
        if all(self._book.root_of(name) == root for name, root in new.items()):
            return {}
        self._wait_until_idle()
        if self._book.is_over:
            raise EngineAwayError("the engine has begun another life: it gets what it had before anything new")
        try:
            self._start_with(new)
        except EngineError as error:
            self._put_back(new)
            return self._blame(new, error)
        self._suspects -= set(new)
        return {}

    def _blame(self, new: Mapping[str, str], error: EngineError) -> Mapping[str, EngineError]:
        """One of several can't be told from the others: each is tried alone the next time."""
        if isinstance(error, RestartError):
            return dict.fromkeys(new, error)
        if len(new) > 1:
            self._suspects |= set(new)
            text = f"the engine did not start with {len(new)} new adapters: each is tried alone next"
            return dict.fromkeys(new, EngineAwayError(text))
        return dict.fromkeys(new, EngineRefusedError(f"the engine does not start with this adapter: {error}"))

    def _wait_until_idle(self) -> None:
        until = self._clock() + self._pace.drain_s
        while self._clock() < until and self._is_busy():
            self._sleep(self._pace.poll_s)

    def _is_busy(self) -> bool:
        try:
            page = self._connection.ask("/metrics").text
        except EngineAwayError:
            return False
        return total(page, "tgi_batch_current_size") + total(page, "tgi_queue_size") > 0

    def _start_with(self, new: Mapping[str, str]) -> None:
        """Restart it with what it is to have by now, and these too; the same life goes on."""
        with self._setting:
            self._want({**self._book.wanted, **new})
        with self._away():
            self._run_hook()
            self._wait_until_up()
            self._book.start_over()

    @contextmanager
    def _away(self) -> Iterator[None]:
        """Whoever looks at the engine while in the block is told that it is being restarted."""
        self._restarting.set()
        try:
            yield
        finally:
            self._restarting.clear()

    def _run_hook(self) -> None:
        self._restarter.restart()
        self._starts += 1

    def _wait_until_up(self) -> None:
        until = self._clock() + self._pace.start_s
        while not self._is_up():
            if self._clock() >= until:
                raise EngineAwayError(f"it did not come up within {self._pace.start_s:g} s")
            self._sleep(self._pace.poll_s)

    def _is_up(self) -> bool:
        try:
            return self._connection.is_healthy()
        except EngineAwayError:
            return False

    def _put_back(self, new: Mapping[str, str]) -> None:
        """The set without these, in the file at once, and in the engine if it doesn't answer as it is."""
        with self._setting:
            former = {name: root for name, root in self._book.wanted.items() if name not in new}
            self._want(former)
        _log.warning("the engine gets its former %d adapters back", len(former))
        if not self._is_up():
            self._start_with({})

    def _take_back(self) -> None:
        """A change that a killed agent was about may hold what keeps the engine from starting: it is commanded anew.

        It may stand in the file alone, or in the book alone.
        """
        sound = {adapter.name: adapter.root for adapter in self._book.listed()}
        if sound != self._book.wanted or not self._is_set(sound):
            self._want(sound)

    def _want(self, adapters: Mapping[str, str]) -> None:
        self._write_set(adapters)
        self._book.want(adapters)

    def _is_set(self, adapters: Mapping[str, str]) -> bool:
        """Whether the next start gives the engine these; without a file it has none."""
        try:
            return self._set_file.read_bytes() == _line(adapters)
        except FileNotFoundError:
            return not adapters

    def _write_set(self, adapters: Mapping[str, str]) -> None:
        self._set_file.parent.mkdir(parents=True, exist_ok=True)
        write_durably(self._set_file, _line(adapters))


def _line(adapters: Mapping[str, str]) -> bytes:
    """The set as its file says it."""
    text = ",".join(f"{name}={root}" for name, root in sorted(adapters.items()))
    return f"LORA_ADAPTERS={text}\n".encode()


def _status(response: httpx.Response) -> int:
    """TGI says 424 when its own model server fails: that is no fault of the request."""
    return 500 if response.status_code == httpx.codes.FAILED_DEPENDENCY else response.status_code
