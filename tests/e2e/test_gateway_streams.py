"""24 streams at once through the gateway to a real vLLM, over 6 aliases, each answer told from the others by itself.

In the suite for the better part of a minute; ``make soak-gateway`` has it go on for ten (LOREKEEPER_SOAK_SECONDS).
"""

import json
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import pytest

from bench.cache.adapters import Built, build_adapters
from bench.cache.base import BASE_NAME, BASE_REVISION, cut_base
from bench.cache.plan import Plan
from deploy.demo.materials import DEFAULT_CACHE, ensure_base_model
from deploy.embedded.facts import EngineOptions
from deploy.embedded.stack import Stack
from registry.reports import PROBE_TEXT
from tests.e2e.fleet import OWN, Fleet, apart, readings_of
from tests.e2e.journey import ADAPTER, TENANT, Journey, wait_until
from workers.node.engines.readings import echoed_request

SECONDS = float(os.environ.get("LOREKEEPER_SOAK_SECONDS", "45"))
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(SECONDS + 400),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]
ROOT = Path(__file__).resolve().parents[2]
STREAMS, ALIASES = 24, 6
PLAN = Plan(layers=4, versions=ALIASES, tenants=1, ranks=(8,))
MIB = 2**20
# From the middle to the end: what a process gathers when it's new, it has by then.
MOST_GROWTH, MOST_MEMORY = 6 * MIB, 150 * MIB


@pytest.fixture(scope="module")
def built(stack_folder: Path, base: Path) -> Mapping[str, Built]:
    versions = build_adapters(stack_folder / "adapters", base, PLAN)
    return {f"v{version.number}": version for version in versions}


@pytest.fixture(scope="module")
def base(stack_folder: Path) -> Path:
    return cut_base(ensure_base_model(ROOT / DEFAULT_CACHE)[0], stack_folder / "base", layers=PLAN.layers)


@pytest.fixture(scope="module")
def fleet(stack_folder: Path, base: Path, built: Mapping[str, Built]) -> Iterator[Fleet]:
    """Six versions, loaded, each with an alias of its name; they are read by PEFT while the engine starts."""
    python = Path(os.environ.get("LOREKEEPER_VLLM_PYTHON", ROOT / ".venv-vllm" / "bin" / "python"))
    assert python.exists(), f"{python} does not exist: run make engine"
    engine = EngineOptions(
        python=python.absolute(),
        model=base,
        base_model=BASE_NAME,
        base_revision=BASE_REVISION,
        gpu_slots=ALIASES,
        cpu_slots=ALIASES,
        evaluates=False,
    )
    stack = Stack(stack_folder / "streams", engine=engine, settings={"LOREKEEPER_COLD_WAIT": "60"}, calm_seconds=0)
    stack.start()
    try:
        readings = readings_of(base, built)
        stack.wait_ready(*(name for name in stack.names if name not in {"engine", "agent"}), "node", seconds=300)
        journey = Journey(stack, base_model=BASE_NAME, base_revision=BASE_REVISION).set_up()
        fleet = Fleet(journey, readings)
        for name, version in built.items():
            fleet.bring_in(version.folder, name)
        stack.wait_ready(seconds=300)
        for name in built:
            journey.warm(name)
            fleet.release(name)
        yield fleet
        journey.close()
    finally:
        stack.stop()


@dataclass(slots=True)
class Streams:
    """What came of them: how many whole answers by each version, and everything that wasn't as it should be."""

    answered: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    errors: list[str] = field(default_factory=list)


class Stream(threading.Thread):
    """Asks one alias after the other until it's over."""

    def __init__(self, number: int, fleet: Fleet, over: threading.Event, streams: Streams) -> None:
        super().__init__(daemon=True)
        self._number = number
        self._fleet = fleet
        self._over = over
        self._streams = streams

    def run(self) -> None:
        journey, names = self._fleet.journey, tuple(self._fleet.readings)
        headers = {"Authorization": f"Bearer {journey.application_token}"}
        with httpx.Client(
            base_url=journey.stack.urls["gateway"], headers=headers, timeout=60, trust_env=False
        ) as client:
            turn = self._number
            while not self._over.is_set():
                self._ask(client, names[turn % len(names)])
                turn += 1

    def _ask(self, client: httpx.Client, name: str) -> None:
        body = {**echoed_request(name, PROBE_TEXT), "max_tokens": 8, "ignore_eos": True, "stream": True}
        body["stream_options"] = {"include_usage": True}
        try:
            with client.stream("POST", "/v1/completions", json=body) as answer:
                events = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
        except httpx.TransportError as error:
            self._streams.errors.append(f"{name}: {error!r}")
            return
        said = answer.headers.get("x-lorekeeper-version")
        if answer.status_code != httpx.codes.OK or said != f"{TENANT}/{ADAPTER}@{name}" or events[-1] != "[DONE]":
            self._streams.errors.append(f"{name}: {answer.status_code} by {said}, {events[-1:]}")
            return
        self._judge(name, [json.loads(event) for event in events[:-1]])

    def _judge(self, name: str, chunks: list[dict[str, object]]) -> None:
        """By what it reads out of the prompt."""
        usage, values = read_chunks(chunks)
        far = {each: apart(values[1 : usage["prompt_tokens"]], own) for each, own in self._fleet.readings.items()}
        closest = min(far, key=lambda each: far[each])
        if closest != name or far[closest] > OWN:
            self._streams.errors.append(f"{name} was answered as {closest} would, {far[closest]:.2f} nats off")
        self._streams.answered[name] += 1
        self._streams.tokens += usage["completion_tokens"]


def read_chunks(chunks: list[dict[str, object]]) -> tuple[dict[str, int], list[float]]:
    """The usage, and the log-probabilities of prompt and answer in their order."""
    usage: dict[str, int] = {}
    values: list[float] = []
    for chunk in chunks:
        if chunk.get("usage"):
            usage = dict(chunk["usage"])  # type: ignore[call-overload]
        for choice in chunk["choices"]:  # type: ignore[attr-defined]
            found = (choice.get("logprobs") or {}).get("token_logprobs") or []
            values.extend(math.nan if each is None else each for each in found)
    return usage, values


def test_24_streams_over_6_aliases_are_answered_without_an_error_and_without_more_memory(fleet: Fleet) -> None:
    process = psutil.Process(fleet.journey.stack.pid_of("gateway"))
    streams, over = Streams(), threading.Event()
    threads = [Stream(number, fleet, over, streams) for number in range(STREAMS)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(streams.answered) == ALIASES or bool(streams.errors), "all aliases answer")
    memory, at_once = [process.memory_info().rss], []
    for _half in range(2):
        time.sleep(SECONDS / 2)
        memory.append(process.memory_info().rss)
        at_once.append(httpx.get(f"{fleet.journey.stack.urls['gateway']}/readyz").json()["in_flight"])
    over.set()
    for thread in threads:
        thread.join()
    start, middle, end = (each / MIB for each in memory)
    print(
        f"{at_once} streams at once for {SECONDS:.0f} s: {streams.answered.total()} answers, {streams.tokens} tokens,"
        f" {len(streams.errors)} errors; gateway {start:.1f} MiB at the start, {middle:.1f} in the middle, {end:.1f} at"
        " the end"
    )
    assert not streams.errors, streams.errors[:3]
    assert min(at_once) >= STREAMS - ALIASES
    assert set(streams.answered) == set(fleet.readings)
    assert memory[-1] - memory[1] <= MOST_GROWTH
    assert memory[-1] <= MOST_MEMORY
