"""The whole of Lorekeeper around the same engine: five tenants with their people, versions, aliases and one policy."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.cache.base import BASE_NAME, BASE_REVISION
from bench.cache.policy import policy_text, put_in_force
from client.audit import verify_export
from client.refs import PairRef, VersionRef
from client.sdk import LorekeeperClient
from deploy.embedded.facts import EngineOptions
from deploy.embedded.plan import build_plan
from deploy.embedded.specs import ProcessSpec, Spec
from deploy.embedded.stack import Stack
from deploy.embedded.system.secret_files import random_text
from deploy.engine.residency import install_plugin, plugin_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bench.cache.adapters import Built
    from bench.cache.origin import Origin
    from bench.cache.plan import Plan
    from bench.cache.reads import Reads
    from deploy.embedded.facts import StackFacts

NODE = "bench"
_ENGINE_PARTS = frozenset({"engine", "agent"})
_READY_S = 300.0
_PUSHERS = 6
_LOOK_S = 0.5
# Files that left an engine are deleted after so many seconds: the default's five minutes are longer than the run.
_SETTINGS = {"LOREKEEPER_COLD_WAIT": "60", "LOREKEEPER_EVICT_GRACE": "5", "LOREKEEPER_NODE_HEARTBEAT": "1"}
_PEOPLE = {
    "ana": ("uploader", ["read", "upload"]),
    "ben": ("reviewer", ["read", "approve", "release"]),
    "rui": ("release_manager", ["read", "release"]),
    "ivy": ("auditor", ["read", "audit"]),
}


@dataclass(frozen=True, slots=True)
class Tenant:
    """The tokens of a tenant's people, and its application's."""

    name: str
    people: dict[str, str]
    application: str


class Stage:
    """The running stack. `prepare` needs no engine, so that it can be done while the engine starts."""

    def __init__(
        self,
        folder: Path,
        *,
        python: Path,
        base: Path,
        versions: Sequence[Built],
        plan: Plan,
        reads: Reads,
        origin: Origin,
    ) -> None:
        """Begin to start everything in `folder`."""
        self._plan = plan
        self._versions = versions
        self.tenants: dict[str, Tenant] = {}
        engine = EngineOptions(
            python=python,
            model=base,
            base_model=BASE_NAME,
            base_revision=BASE_REVISION,
            node=NODE,
            gpu_slots=plan.gpu_slots,
            cpu_slots=plan.places,
            max_rank=max(plan.ranks),
            disk_bytes=int(sum(version.size for version in versions) * plan.disk_share),
            evaluates=False,
        )
        settings = {**_SETTINGS, "LOREKEEPER_S3_PUBLIC_ENDPOINT": origin.url}
        parts = _plan_with_plugin(folder / "plugin", reads.environment)
        self.stack = Stack(folder, engine=engine, settings=settings, plan=parts)
        self.stack.start()
        origin.upstream = ("127.0.0.1", self.stack.facts.ports["s3.http"])

    def prepare(self) -> None:
        """Make tenants and people, push every version, have it approved by somebody else, put the policy in force."""
        parts = [name for name in self.stack.names if name not in _ENGINE_PARTS]
        self.stack.wait_ready(*parts, "node", seconds=_READY_S)
        with self.admin() as admin:
            for name in sorted({version.tenant for version in self._versions}):
                self.tenants[name] = settle(admin, name)
        for name, adapter in sorted({(version.tenant, version.adapter) for version in self._versions}):
            with self.person(name, "ana") as ana:
                ana.adapters.create(name, adapter, base_model=BASE_NAME)
        put_in_force(self.stack, BASE_NAME, policy_text(self._plan))
        with ThreadPoolExecutor(_PUSHERS) as pool:
            list(pool.map(self._bring_in, self._versions))

    def release(self) -> None:
        """Wait for the engine, point an alias at each version, and wait until what that brings about is over."""
        self.stack.wait_ready(seconds=_READY_S)
        for version in self._versions:
            with self.person(version.tenant, "rui") as rui:
                rui.aliases.set(PairRef(version.tenant, version.alias), _ref(version))
        with self.admin() as admin:
            deadline = time.monotonic() + _READY_S
            while not _is_calm(admin) and time.monotonic() < deadline:
                time.sleep(_LOOK_S)

    def admin(self) -> LorekeeperClient:
        """The platform admin's connection."""
        tokens = json.loads(self.stack.facts.secrets.bootstrap.read_text())
        return LorekeeperClient(self.stack.urls["web"], tokens["admin_token"])

    def person(self, tenant: str, name: str) -> LorekeeperClient:
        """A person's connection."""
        return LorekeeperClient(self.stack.urls["web"], self.tenants[tenant].people[name])

    def broken_audits(self) -> list[str]:
        """The tenants whose audit log does not verify."""
        broken = []
        for name in self.tenants:
            with self.person(name, "ivy") as ivy, ivy.audit.export(name) as lines:
                if not verify_export(lines, chain=name).intact:
                    broken.append(name)
        return broken

    def _bring_in(self, version: Built) -> None:
        with self.person(version.tenant, "ana") as ana:
            ana.push(
                version.folder,
                PairRef(version.tenant, version.adapter),
                base_revision=BASE_REVISION,
                name=version.version,
            )
            pushed = ana.versions.wait(_ref(version))
        with self.person(version.tenant, "ben") as ben:
            ben.versions.approve(_ref(version), digest=str(pushed.root_digest))


def _plan_with_plugin(folder: Path, environment: Mapping[str, str]) -> Callable[[StackFacts], tuple[Spec, ...]]:
    """The plan of the stack with our residency plugin, and something more in its engine's environment.

    With the plugin an unload is one: without it vLLM keeps what it was told to unload, and drops by its own order what
    it was not.
    """
    token = random_text()
    plugin = plugin_environment(install_plugin(folder))
    joined = {
        "PYTHONPATH": os.pathsep.join((environment["PYTHONPATH"], plugin["PYTHONPATH"])),
        "VLLM_PLUGINS": ",".join((environment["VLLM_PLUGINS"], plugin["VLLM_PLUGINS"])),
    }
    more = {
        "engine": {**environment, **joined, "LOREKEEPER_RESIDENCY_TOKEN": token},
        "agent": {"LOREKEEPER_NODE_ENGINE_TOKEN": token},
    }

    def plan(facts: StackFacts) -> tuple[Spec, ...]:
        return tuple(
            replace(spec, environment={**spec.environment, **more.get(spec.name, {})})
            if isinstance(spec, ProcessSpec)
            else spec
            for spec in build_plan(facts)
        )

    return plan


def _is_calm(admin: LorekeeperClient) -> bool:
    """Whether nothing is on its way to or from the node."""
    ends = {"gpu": "loaded", "disk": "on_disk", "absent": "absent"}
    return all(ends[each.desired] == each.observed for each in admin.nodes.get(NODE).residencies)


def settle(admin: LorekeeperClient, tenant: str) -> Tenant:
    """Make the tenant with its people and their tokens."""
    admin.tenants.create(tenant)
    people = {}
    for name, (role, scopes) in _PEOPLE.items():
        email = f"{name}@{tenant}.example"
        admin.tenants.add_member(tenant, email=email, role=role, name=name)
        made = admin.tenants.create_token(tenant, name=name, kind="person", scopes=scopes, person_email=email)
        people[name] = str(made.token)
    application = admin.tenants.create_token(tenant, name="app", kind="application", scopes=["infer"])
    return Tenant(tenant, people, str(application.token))


def _ref(version: Built) -> VersionRef:
    return VersionRef(version.tenant, version.adapter, version.version)
