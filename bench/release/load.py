"""Applications of two tenants that ask all the time, and whose users mark some of the answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import httpx

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from bench.release.plan import Plan

PROMPTS = (
    "Where is my order?",
    "My parcel has not arrived yet.",
    "How do I return these shoes?",
    "Which payment methods do you take?",
)
_PATIENCE_S = 30.0
_DATA, _DONE = "data: ", "[DONE]"
_OK = httpx.codes.OK


@dataclass(frozen=True, slots=True)
class Caller:
    """One application: whose it is, its API key, and what it calls the alias."""

    tenant: str
    key: str
    model: str


@dataclass(slots=True)
class Answer:
    """What became of one request. `began` and `ended` are UNIX times, `version` is its name, as the gateway says."""

    began: float
    tenant: str
    session: str
    prompt: str
    ended: float = 0.0
    first_s: float = _PATIENCE_S
    status: int = 0
    version: str = ""
    request_id: str = ""
    text: str = ""
    reason: str = ""

    @property
    def is_answered(self) -> bool:
        """Whether it was answered to its end."""
        return self.status == _OK and not self.reason


class Applications:
    """Ask while in the block, in a thread.

    Attributes:
        answers: in the order in which they ended; more come while the block lasts.
        good: the right answer to each prompt, which is what the alias says before anything is released.
        unmarked: why marks were not taken, with how many.

    """

    def __init__(self, url: str, callers: Sequence[Caller], plan: Plan) -> None:
        """Prepare to ask the gateway at `url`; the second caller gets the pilot's share."""
        self.answers: list[Answer] = []
        self.good: Mapping[str, str] = {}
        self.unmarked: Counter[str] = Counter()
        self.marks = 0
        self._url = url
        self._callers = callers
        self._plan = plan
        self._chance = random.Random(plan.seed)  # noqa: S311  a load, not a secret
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="applications", daemon=True)
        self._over = asyncio.Event()
        self._asking: Future[None] | None = None

    def is_good(self, answer: Answer) -> bool:
        """Whether the user has reason to be content."""
        return answer.text == self.good[answer.prompt]

    def __enter__(self) -> Self:
        """Learn the right answers, then ask without an end."""
        self._thread.start()
        self.good = asyncio.run_coroutine_threadsafe(self._learn(), self._loop).result()
        self._asking = asyncio.run_coroutine_threadsafe(self._ask_on(), self._loop)
        return self

    def stop(self) -> None:
        """Ask no more, and wait for what was asked."""
        self._loop.call_soon_threadsafe(self._over.set)
        if self._asking is not None:
            self._asking.result()

    def __exit__(self, *_exc: object) -> None:
        """Stop for good."""
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _learn(self) -> dict[str, str]:
        owner, good = self._callers[0], {}
        async with _client() as http:
            for prompt in PROMPTS:
                answer = Answer(time.time(), owner.tenant, "", prompt)
                await self._ask(http, owner, answer)
                if not answer.is_answered:
                    raise RuntimeError(f"{owner.model} does not answer: {answer.status} {answer.reason}")
                good[prompt] = answer.text
        return good

    async def _ask_on(self) -> None:
        """Requests come as a Poisson process until all is over; those that were asked are answered first."""
        async with _client() as http, asyncio.TaskGroup() as group:
            due = time.monotonic()
            while not await self._is_over_by(due):
                due += self._chance.expovariate(self._plan.rate)
                caller = self._callers[self._chance.random() < self._plan.pilot_share]
                session = f"{caller.tenant}-{self._chance.randrange(self._plan.sessions)}"
                answer = Answer(time.time(), caller.tenant, session, self._chance.choice(PROMPTS))
                group.create_task(self._ask_and_mark(http, caller, answer))

    async def _is_over_by(self, moment: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(moment - time.monotonic()):
                await self._over.wait()
        return self._over.is_set()

    async def _ask_and_mark(self, http: httpx.AsyncClient, caller: Caller, answer: Answer) -> None:
        try:
            await self._ask(http, caller, answer)
        except (httpx.HTTPError, TimeoutError, ValueError) as error:
            answer.reason = f"{type(error).__name__}: {error}"
        answer.ended = time.time()
        self.answers.append(answer)
        if answer.is_answered and self._chance.random() < self._plan.marked:
            await self._mark(http, caller, answer)

    async def _ask(self, http: httpx.AsyncClient, caller: Caller, answer: Answer) -> None:
        body = {
            "model": caller.model,
            "prompt": answer.prompt,
            "max_tokens": self._plan.tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
        }
        headers = {"authorization": f"Bearer {caller.key}", "x-lorekeeper-session": answer.session}
        if not answer.session:
            del headers["x-lorekeeper-session"]
        began = time.monotonic()
        async with (
            asyncio.timeout(_PATIENCE_S),
            http.stream("POST", f"{self._url}/v1/completions", json=body, headers=headers) as response,
        ):
            answer.status = response.status_code
            # A tenant that an alias is shared with isn't told whose the version is.
            answer.version = response.headers.get("x-lorekeeper-version", "").rpartition("@")[2]
            answer.request_id = response.headers.get("x-lorekeeper-request-id", "")
            if answer.status != _OK:
                answer.reason = (await response.aread()).decode(errors="replace")[:300]
                return
            async for line in response.aiter_lines():
                if line.startswith(_DATA) and answer.first_s == _PATIENCE_S:
                    answer.first_s = time.monotonic() - began
                answer.text += _text_of(line)

    async def _mark(self, http: httpx.AsyncClient, caller: Caller, answer: Answer) -> None:
        is_up = self.is_good(answer) != (self._chance.random() < self._plan.misread)
        body = {"request_id": answer.request_id, "mark": "up" if is_up else "down"}
        try:
            said = await http.post(
                f"{self._url}/v1/feedback", json=body, headers={"authorization": f"Bearer {caller.key}"}
            )
        except httpx.HTTPError as error:
            self.unmarked[type(error).__name__] += 1
            return
        if said.is_success:
            self.marks += 1
        else:
            self.unmarked[f"{said.status_code} {said.text[:160]}"] += 1


def _client() -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
    return httpx.AsyncClient(trust_env=False, timeout=_PATIENCE_S, limits=limits)


def _text_of(line: str) -> str:
    if not line.startswith(_DATA) or line == _DATA + _DONE:
        return ""
    chunk = json.loads(line.removeprefix(_DATA))
    if "error" in chunk:
        raise httpx.RemoteProtocolError(str(chunk["error"]))
    return "".join(choice.get("text") or "" for choice in chunk["choices"])
