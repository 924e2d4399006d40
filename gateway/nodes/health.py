"""Asks each node's engine for its health, so that one that is down is passed over before requests have found out."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from gateway.errors import EngineFault, GatewayBusy
from gateway.limits import TenantLimits
from gateway.nodes.fleet import Fleet
from gateway.routing.current import CurrentSnapshot
from gateway.routing.snapshot import Node
from gateway.upstream.ports import EngineCall, Upstream

_PATH = "/health"
_OK = 200
CHECKS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Pulse:
    """How often engines are asked, and how long one may take to answer; in seconds."""

    every_s: float = 5.0
    timeout_s: float = 5.0


class HealthChecks:
    """One round after the other over all nodes; tidies up after nodes and tenants that are gone, too."""

    def __init__(
        self,
        *,
        current: CurrentSnapshot,
        fleet: Fleet,
        limits: TenantLimits,
        upstream: Upstream,
        pulse: Pulse | None = None,
    ) -> None:
        """Tell `fleet` what the engines of the snapshot's nodes say.

        `upstream` has CHECKS_AT_ONCE connections that nobody else uses: to wait for one would look like a sick engine.
        """
        self._current = current
        self._fleet = fleet
        self._limits = limits
        self._upstream = upstream
        self._pulse = pulse or Pulse()
        self._free = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            await asyncio.sleep(self._pulse.every_s)
            if self._current.is_ready:
                await self.check(self._current.get().nodes.values())

    async def check(self, nodes: Iterable[Node]) -> None:
        """One round."""
        asked = tuple(nodes)
        await asyncio.gather(*map(self._check, asked))
        self._fleet.keep_only(node.name for node in asked)
        self._limits.forget_idle()

    async def _check(self, node: Node) -> None:
        async with self._free:
            healthy = await self._is_healthy(node)
        if healthy is not None:
            self._fleet.checked(node.name, healthy=healthy)

    async def _is_healthy(self, node: Node) -> bool | None:
        """None where nothing was learnt, since this gateway has no connection left."""
        call = EngineCall(engine_url=node.engine_url, path=_PATH, headers={}, body=b"", method="GET")
        try:
            async with asyncio.timeout(self._pulse.timeout_s):
                answer = await self._upstream.send(call)
        except GatewayBusy:
            return None
        except (EngineFault, TimeoutError):
            return False
        answer.close()
        return answer.status == _OK
