"""Serving nodes and what sits on them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from client.decoding import decode
from client.errors import WaitTimedOut
from client.i18n import _
from client.pages import read_all
from client.transport import path_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.refs import VersionRef
    from client.transport import Transport

_POLL_S = 0.2
WARM_ENDS = frozenset({"loaded", "failed"})
EVICT_ENDS = frozenset({"absent"})
DEMOTE_ENDS = frozenset({"on_disk", "failed"})


@dataclass(frozen=True, slots=True)
class Residency:
    """Where one version sits on one node: desired and observed tier."""

    node: str
    tenant: str
    adapter: str
    version: str
    desired: str
    observed: str
    version_id: str = ""
    engine_name: str = ""
    planned_tier: str = ""
    tier: str | None = None
    tier_is_estimate: bool = False
    generation: int = 0
    message: str = ""
    load_ms: int | float | None = None
    fetch_ms: int | float | None = None
    fetched_bytes: int = 0
    last_used_at: str | None = None
    updated_at: str = ""

    @property
    def ref(self) -> str:
        """Return `tenant/adapter@version`."""
        return f"{self.tenant}/{self.adapter}@{self.version}"


@dataclass(frozen=True, slots=True)
class Drift:
    """What an engine had that it shouldn't: names nobody asked for, and names it had from another path."""

    unknown: tuple[str, ...] = ()
    mismatched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A serving node; `token` is there only in the answers that issued it."""

    name: str
    engine_kind: str = ""
    engine_url: str = ""
    base_model: str = ""
    base_revision: str = ""
    gpu_slots: int = 0
    cpu_slots: int = 0
    max_rank: int = 0
    disk_bytes: int = 0
    memory_bytes: int | None = None
    status: str = ""
    engine_healthy: bool = False
    tainted: bool = False
    poisoned: bool = False
    restartable: bool = False
    stuck: bool = False
    cordoned: bool = False
    draining: bool = False
    recycling_since: str | None = None
    mismatches: int = 0
    drift: Drift = field(default_factory=Drift)
    disk_used_bytes: int | None = None
    disk_free_bytes: int | None = None
    boot_id: str | None = None
    last_seen_at: str | None = None
    residencies: tuple[Residency, ...] = ()
    token: str | None = field(default=None, repr=False)

    @property
    def condition(self) -> tuple[str, ...]:
        """Return what is out of the ordinary, as words: cordoned, draining, recycling, tainted, poisoned, stuck."""
        words = ("cordoned", "draining", "tainted", "poisoned", "stuck")
        found = tuple(word for word in words if getattr(self, word))
        return (*found, "recycling") if self.recycling_since else found


class Nodes:
    """Calls below `/nodes`."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def register(
        self,
        name: str,
        *,
        engine_url: str,
        base_model: str,
        base_revision: str,
        gpu_slots: int,
        cpu_slots: int,
        max_rank: int,
        disk_bytes: int,
        engine_kind: str = "vllm",
        memory_bytes: int | None = None,
    ) -> Node:
        """Register a node; its token is in the answer this once."""
        body = {
            "name": name,
            "engine_kind": engine_kind,
            "engine_url": engine_url,
            "base_model": base_model,
            "base_revision": base_revision,
            "gpu_slots": gpu_slots,
            "cpu_slots": cpu_slots,
            "max_rank": max_rank,
            "disk_bytes": disk_bytes,
            "memory_bytes": memory_bytes,
        }
        return decode(Node, self._transport.call("POST", path_of("nodes"), body=body))

    def all(self) -> tuple[Node, ...]:
        """Return all nodes this token may see."""
        return read_all(Node, self._transport, path_of("nodes"))

    def get(self, name: str) -> Node:
        """Return one node with its residencies."""
        return decode(Node, self._transport.call("GET", path_of("nodes", name)))

    def rotate_token(self, name: str) -> Node:
        """Give the node a new token; the old one stops working."""
        return decode(Node, self._transport.call("POST", path_of("nodes", name, "rotate-token")))

    def cordon(self, name: str, *, reason: str = "") -> Node:
        """Place nothing new on the node."""
        return self._operate(name, "cordon", reason)

    def uncordon(self, name: str, *, reason: str = "") -> Node:
        """Take the cordon off."""
        return self._operate(name, "uncordon", reason)

    def drain(self, name: str, *, reason: str = "") -> Node:
        """Have the node emptied: no more requests, and what it holds goes elsewhere."""
        return self._operate(name, "drain", reason)

    def resume(self, name: str, *, reason: str = "") -> Node:
        """End a drain."""
        return self._operate(name, "resume", reason)

    def recycle(self, name: str, *, reason: str = "") -> Node:
        """Have the node's engine restarted by its agent."""
        return self._operate(name, "recycle", reason)

    def _operate(self, name: str, verb: str, reason: str) -> Node:
        return decode(Node, self._transport.call("POST", path_of("nodes", name, verb), body={"reason": reason}))

    def warm(self, name: str, ref: VersionRef) -> Residency:
        """Ask for the version to be loaded on the node's GPU."""
        return self._move(name, "warm", ref)

    def evict(self, name: str, ref: VersionRef, *, to: str = "absent") -> Residency:
        """Ask for the version to leave the node, or its engine alone with `to="disk"`."""
        return self._move(name, "evict", ref, to=to)

    def _move(self, name: str, verb: str, ref: VersionRef, **more: str) -> Residency:
        body = {"tenant": ref.tenant, "adapter": ref.adapter, "version": ref.version, **more}
        return decode(Residency, self._transport.call("POST", path_of("nodes", name, verb), body=body))

    def wait(
        self,
        name: str,
        ref: VersionRef,
        *,
        ends: frozenset[str],
        generation: int,
        timeout_s: float = 120.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Residency | None:
        """Poll until the residency of `generation` or later is observed in one of `ends`; null when it is gone.

        Raises:
            WaitTimedOut: it isn't there after `timeout_s` seconds.

        """
        deadline = clock() + timeout_s
        while True:
            found = next((r for r in self.get(name).residencies if r.ref == str(ref)), None)
            if found is None and "absent" in ends:
                return None
            if found is not None and found.generation >= generation and _has_ended(found, ends):
                return found
            if clock() + _POLL_S > deadline:
                state = found.observed if found else "absent"
                message = _("{ref} is still {state} on {node} after {seconds:g} s; see `lorekeeper nodes {node}`.")
                raise WaitTimedOut(message.format(ref=ref, state=state, node=name, seconds=timeout_s))
            sleep(_POLL_S)


def _has_ended(residency: Residency, ends: frozenset[str]) -> bool:
    """Say whether an end was reached; a failure without a message is the one before, which is being tried anew."""
    stale_failure = residency.observed == "failed" and not residency.message
    return residency.observed in ends and not stale_failure
