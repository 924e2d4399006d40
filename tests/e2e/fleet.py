"""One node with a real vLLM and more versions than it holds: who answers is found out from the answers themselves."""

import json
import math
import random
import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from bench.cache.adapters import Built
from bench.validation.reference import Reference
from client.errors import LorekeeperError
from client.refs import PairRef, VersionRef
from client.resources.nodes import Node
from client.sdk import LorekeeperClient
from registry.reports import PROBE_TEXT
from tests.e2e.journey import ADAPTER, TENANT, Journey, insist, wait_until
from workers.node.engines.readings import echoed_request

# An answer's reading differs from PEFT's by 0.03 to 0.11 nats a token, and from any other version's by more than 0.5.
OWN, OTHERS = 0.2, 0.5
RETURN_S = 60.0
_ASKERS = 2
_PAUSE_S = 0.05
_TIMEOUT_S = 40.0


@dataclass(frozen=True, slots=True)
class Heard:
    """One request: which version was asked for, what came, who the answer says it is from, and whose it is."""

    asked: str
    status: int
    said: str
    whose: str | None
    at: float

    @property
    def is_answered(self) -> bool:
        return self.status == httpx.codes.OK

    @property
    def is_wrong(self) -> bool:
        """Another version's answer, or one under another version's name. One that is nobody's is counted apart."""
        ref = f"{TENANT}/{ADAPTER}@{self.asked}"
        return self.is_answered and (self.said != ref or (self.whose is not None and self.whose != self.asked))


@dataclass
class Flow:
    """What was heard while requests flowed."""

    heard: list[Heard] = field(default_factory=list)

    @property
    def wrong(self) -> list[Heard]:
        return [each for each in self.heard if each.is_wrong]

    @property
    def nobodys(self) -> list[Heard]:
        """Answers whose log-probabilities are no version's, or no numbers."""
        return [each for each in self.heard if each.is_answered and each.whose is None]

    def answered_since(self, moment: float) -> set[str]:
        return {each.asked for each in self.heard if each.is_answered and each.at > moment}

    def summary(self) -> str:
        answered = sum(each.is_answered for each in self.heard)
        return f"{answered} of {len(self.heard)} answered, {len(self.wrong)} wrong, {len(self.nobodys)} nobody's"


@dataclass
class Fleet:
    """The versions of a journey by name, with how PEFT reads a text with each."""

    journey: Journey
    readings: Mapping[str, tuple[float, ...]]

    def admin(self) -> LorekeeperClient:
        """A connection of the platform admin's, to be closed."""
        tokens = json.loads(self.journey.stack.facts.secrets.bootstrap.read_text())
        return LorekeeperClient(self.journey.stack.urls["web"], tokens["admin_token"])

    def bring_in(self, folder: Path, name: str) -> None:
        """Push it and have it approved."""
        pushed = self.journey.push(folder, name)
        assert pushed.state == "candidate", pushed.state_message
        self.journey.approve(name)

    def release(self, name: str) -> None:
        """Point an alias of its own at the version."""
        rui = self.journey.clients["rui"]
        insist(lambda: rui.aliases.set(PairRef(TENANT, name), ref_of(name)))

    def hear(self, name: str) -> Heard:
        """Ask the version's alias to read the text; a refusal is heard too."""
        journey = self.journey
        try:
            answer = httpx.post(
                f"{journey.stack.urls['gateway']}/v1/completions",
                json=echoed_request(name, PROBE_TEXT),
                headers={"Authorization": f"Bearer {journey.application_token}"},
                timeout=_TIMEOUT_S,
            )
        except httpx.TransportError:
            return Heard(name, 0, "", None, time.monotonic())
        said = answer.headers.get("x-lorekeeper-version", "")
        whose = self._whose(answer.json()) if answer.status_code == httpx.codes.OK else None
        return Heard(name, answer.status_code, said, whose, time.monotonic())

    @contextmanager
    def flow(self, *names: str) -> Iterator[Flow]:
        """Requests for all versions, or for these, come for as long as the block lasts."""
        flow, over = Flow(), threading.Event()

        def ask(seed: int) -> None:
            chance = random.Random(seed)
            while not over.wait(_PAUSE_S):
                flow.heard.append(self.hear(chance.choice(names or tuple(self.readings))))

        askers = [threading.Thread(target=ask, args=(seed,), daemon=True) for seed in range(_ASKERS)]
        for asker in askers:
            asker.start()
        try:
            yield flow
        finally:
            over.set()
            for asker in askers:
                asker.join()

    def node(self) -> Node:
        return self.journey.clients["olga"].nodes.get(self.journey.node)

    def boot_id(self) -> str:
        """Of the engine's life that the node last told; "" while nobody answers."""
        try:
            return self.node().boot_id or ""
        except LorekeeperError:
            return ""

    def is_on_record(self, words: str) -> bool:
        """Whether the tenant's audit log has these words: what a node says of a version is soon followed by more."""
        with self.journey.clients["ivy"].audit.export(TENANT) as lines:
            return any(words in line for line in lines)

    def is_loading(self) -> bool:
        """Whether a version is on its way into the engine at this moment."""
        try:
            return any(each.desired == "gpu" and each.observed != "loaded" for each in self.node().residencies)
        except LorekeeperError:
            return False

    def is_as_desired(self) -> bool:
        """Whether the node is well, every residency is where it is wanted, and the engine holds just those."""
        try:
            node = self.node()
            held = httpx.get(f"{self.journey.stack.urls['engine']}/v1/models", timeout=2).json()["data"]
        except (LorekeeperError, httpx.TransportError, KeyError, ValueError):
            return False
        if node.status != "up" or not node.engine_healthy or node.tainted or node.recycling_since is not None:
            return False
        ends = {"gpu": "loaded", "disk": "on_disk", "absent": "absent"}
        wanted = {each.engine_name for each in node.residencies if each.desired == "gpu"}
        in_engine = {model["id"] for model in held if model.get("parent")}
        return in_engine == wanted and all(each.observed == ends[each.desired] for each in node.residencies)

    def seconds_until_as_desired(self, since: float, *, within: float = RETURN_S) -> float:
        """Wait until the fleet is as desired; the seconds since that moment of the monotonic clock."""
        while not self.is_as_desired():
            assert time.monotonic() - since < within, f"not as desired after {within:.0f} s: {self._standing()}"
            time.sleep(0.1)
        return time.monotonic() - since

    def check_nothing_is_lost(self, flow: Flow) -> None:
        """Every version still answers as itself, under its own name, and the audit log is whole."""
        assert not flow.wrong, flow.wrong[:3]
        for name in self.readings:
            heard: list[Heard] = []

            def answers(name: str = name, heard: list[Heard] = heard) -> bool:
                heard.append(self.hear(name))
                assert not heard[-1].is_wrong, heard[-1]
                return heard[-1].whose == name

            wait_until(answers, f"{name} answers as itself", seconds=RETURN_S)
            assert self.journey.show(name).state == "approved"
        assert self.journey.audit().intact

    def _whose(self, answer: Mapping[str, Any]) -> str | None:
        count = int(answer["usage"]["prompt_tokens"])
        values = [math.nan if each is None else each for each in answer["choices"][0]["logprobs"]["token_logprobs"]]
        far = {name: apart(values[1:count], reading) for name, reading in self.readings.items()}
        closest = min(far, key=lambda name: far[name])
        return closest if far[closest] <= OWN else None

    def _standing(self) -> str:
        try:
            node = self.node()
        except LorekeeperError as error:
            return str(error)
        each = ", ".join(f"{found.version} {found.observed} of {found.desired}" for found in node.residencies)
        return f"{node.status}, healthy {node.engine_healthy}: {each}"


def ref_of(name: str) -> VersionRef:
    return VersionRef(TENANT, ADAPTER, name)


def readings_of(base: Path, versions: Mapping[str, Built]) -> dict[str, tuple[float, ...]]:
    """How PEFT reads the text with each; far enough apart to tell them from one another."""
    reference = Reference(base, PROBE_TEXT)
    readings = {name: reference.read(version.folder) for name, version in versions.items()}
    for name, reading in readings.items():
        closest = min(apart(reading, other) for other_name, other in readings.items() if other_name != name)
        assert closest > OTHERS, f"{name} is {closest:.2f} nats from another"
    return readings


def apart(one: tuple[float, ...] | list[float], other: tuple[float, ...]) -> float:
    """Mean absolute difference in nats a token; infinite when there is no number, or not as many."""
    if len(one) != len(other) or not all(map(math.isfinite, one)):
        return math.inf
    return statistics.fmean(abs(a - b) for a, b in zip(one, other, strict=True))
