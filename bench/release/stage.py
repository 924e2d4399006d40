"""The whole of Lorekeeper around one vLLM, with a relay between gateway and engine, and two tenants on one alias."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.cache.base import BASE_NAME, BASE_REVISION
from bench.cache.stage import Tenant, settle
from bench.release.load import Caller
from bench.release.plan import ADAPTER, ALIAS, OWNER, PILOT
from client.refs import PairRef, VersionRef
from client.sdk import LorekeeperClient
from deploy.embedded.facts import EngineOptions
from deploy.embedded.plan import build_plan
from deploy.embedded.ports import LOOPBACK
from deploy.embedded.specs import StepSpec
from deploy.embedded.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bench.release.relay import Relay
    from deploy.embedded.facts import StackFacts
    from deploy.embedded.specs import Spec

NODE = "bench"
ALIAS_REF = PairRef(OWNER, ALIAS)
_ENGINE_PARTS = frozenset({"engine", "agent"})
_READY_S = 300.0
_GPU_SLOTS, _PLACES, _MAX_RANK = 2, 8, 8
_SETTINGS = {
    "LOREKEEPER_COLD_WAIT": "60",
    "LOREKEEPER_DRAIN_SECONDS": "1",
    "LOREKEEPER_EVICT_GRACE": "5",
    "LOREKEEPER_NODE_HEARTBEAT": "1",
}


def version_ref(name: str) -> VersionRef:
    """A version of the one adapter."""
    return VersionRef(OWNER, ADAPTER, name)


class Stage:
    """The running stack. `prepare` needs no engine, so that it can be done while the engine starts."""

    def __init__(self, folder: Path, *, python: Path, base: Path, relay: Relay) -> None:
        """Begin to start everything in `folder`."""
        engine = EngineOptions(
            python=python,
            model=base,
            base_model=BASE_NAME,
            base_revision=BASE_REVISION,
            node=NODE,
            gpu_slots=_GPU_SLOTS,
            cpu_slots=_PLACES,
            max_rank=_MAX_RANK,
            evaluates=False,
        )
        self.tenants: dict[str, Tenant] = {}
        self.stack = Stack(folder, engine=engine, settings=_SETTINGS, plan=_plan_with(relay))
        self.stack.start()
        relay.upstream = (LOOPBACK, self.stack.facts.ports["engine"])

    def prepare(self, versions: Mapping[str, Path]) -> None:
        """Make the tenants and their people, push every version, and have it approved by somebody else."""
        parts = [name for name in self.stack.names if name not in _ENGINE_PARTS]
        self.stack.wait_ready(*parts, "node", seconds=_READY_S)
        with self.admin() as admin:
            self.tenants = {name: settle(admin, name) for name in (OWNER, PILOT)}
        with self.person("ana") as ana, self.person("ben") as ben:
            ana.adapters.create(OWNER, ADAPTER, base_model=BASE_NAME)
            for name, folder in versions.items():
                ana.push(folder, PairRef(OWNER, ADAPTER), base_revision=BASE_REVISION, name=name)
                pushed = ana.versions.wait(version_ref(name))
                ben.versions.approve(version_ref(name), digest=str(pushed.root_digest))

    def serve(self, name: str) -> None:
        """Wait for the engine, point the alias at the version, and let the pilot call it, too."""
        self.stack.wait_ready(seconds=_READY_S)
        with self.person("rui") as rui:
            rui.aliases.set(ALIAS_REF, version_ref(name))
        with self.admin() as admin:
            admin.aliases.share(ALIAS_REF, PILOT)

    def callers(self) -> tuple[Caller, Caller]:
        """The owner's application and the pilot's."""
        owner, pilot = (Caller(name, self.tenants[name].application, ALIAS) for name in (OWNER, PILOT))
        return owner, pilot

    def admin(self) -> LorekeeperClient:
        """The platform admin's connection."""
        tokens = json.loads(self.stack.facts.secrets.bootstrap.read_text())
        return LorekeeperClient(self.stack.urls["web"], tokens["admin_token"])

    def person(self, name: str) -> LorekeeperClient:
        """The connection of one of the owner's people."""
        return LorekeeperClient(self.stack.urls["web"], self.tenants[OWNER].people[name])


def _plan_with(relay: Relay) -> Callable[[StackFacts], tuple[Spec, ...]]:
    """The plan of the stack, but that the node is registered with the relay's address: gateways ask there."""

    def plan(facts: StackFacts) -> tuple[Spec, ...]:
        return tuple(_through(spec, facts.url("engine"), relay.url) for spec in build_plan(facts))

    return plan


def _through(spec: Spec, engine: str, relay: str) -> Spec:
    if not (isinstance(spec, StepSpec) and spec.name == "node"):
        return spec
    return replace(spec, argv=tuple(relay if part == engine else part for part in spec.argv))
