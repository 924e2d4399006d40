"""The request path over an engine and a control plane in memory."""

import json
from typing import TYPE_CHECKING

from gateway.demand import Demand, DemandAnswer, DemandState
from gateway.limits import TenantLimits
from gateway.path.hedging import Hedging
from gateway.path.joining import PathLimits, join_path
from gateway.path.targets import Ask
from gateway.routing.absences import Absences
from gateway.routing.current import CurrentSnapshot
from gateway.shadow.mirror import Budget
from gateway.surface.endpoints import COMPLETIONS, Endpoint
from gateway.surface.session import session_key
from gateway.trace import Trace
from gateway.upstream.ports import Upstream
from tests.unit.gateway.fakes import Client, FakeUpstream, said_by
from tests.unit.gateway.worlds import World, node_row, residency_row

if TYPE_CHECKING:
    from uuid import UUID

    from gateway.records import RequestRecord, ShadowRecord

HEADERS = {"authorization": "Bearer secret", "cookie": "a=b", "accept": "*/*", "traceparent": "00-1"}


class Gateway:
    """The path over fakes; a demand loads the version on `n9` when `loads` is set."""

    def __init__(
        self,
        world: World,
        *,
        loads: bool = False,
        cold_wait_s: float = 0.3,
        absent_s: float = 2.0,
        shadows: Budget | None = None,
        hedging: Hedging | None = None,
        upstream: Upstream | None = None,
    ) -> None:
        self.world, self.loads = world, loads
        self.current = CurrentSnapshot()
        self.current.publish(world.snapshot())
        self.upstream = FakeUpstream(lambda call: said_by(json.loads(call.body)["model"]))
        self.demands: list[UUID] = []
        self.records: list[RequestRecord] = []
        self.compared: list[ShadowRecord] = []
        self.joined = join_path(
            PathLimits(
                cold_wait_s=cold_wait_s,
                max_waiting=10,
                max_waiting_each=10,
                shadows=shadows or Budget(most=4),
                hedging=hedging,
            ),
            current=self.current,
            absences=Absences(lasts_s=absent_s),
            demand=self,
            upstream=upstream or self.upstream,
            records=self,
            tenants=TenantLimits(),
            look_s=0.02,
        )
        self.path = self.joined.path

    async def ask(self, demand: Demand) -> DemandAnswer:
        version_id = demand.version_id
        self.demands.append(version_id)
        if self.loads:
            row = next(row for row in self.world.versions if row[0] == version_id)
            self.world.nodes.append(node_row("n9"))
            self.world.residencies.append(residency_row("n9", row))
            self.current.publish(self.world.snapshot())
        return DemandAnswer(DemandState.LOADING)

    def add(self, record: "RequestRecord") -> None:
        self.records.append(record)

    def add_shadow(self, record: "ShadowRecord") -> None:
        self.compared.append(record)

    async def serve(
        self,
        client: Client,
        model: object = "support",
        *,
        request_id: str = "req-1",
        endpoint: Endpoint = COMPLETIONS,
        headers: dict[str, str] | None = None,
        **more: object,
    ) -> Trace:
        body: dict[str, object] = {"model": model, "prompt": "hi", **more}
        headers = HEADERS if headers is None else headers
        trace = Trace(request_id, tenant="acme", path=endpoint.name)
        trace.stream = body.get("stream") is True
        ask = Ask(endpoint, headers, body, 100, session_key(headers, body))
        await self.path.serve(ask, trace=trace, responder=client.responder())
        return trace
