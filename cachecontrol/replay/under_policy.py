"""What a policy document makes of a node and of a trace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from cachecontrol.engines import CAPABILITIES
from cachecontrol.replay.simulate import NodeShape
from cachecontrol.states import EngineKind

if TYPE_CHECKING:
    from cachecontrol.policy.effective import PolicyInForce
    from cachecontrol.replay.trace import Trace

_MIB: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMeans:
    """What a node has, whatever a policy allows of it; ``disk_bytes`` is for versions alone."""

    engine: EngineKind = EngineKind.VLLM
    gpu_slots: int = 16
    cpu_slots: int = 256
    disk_bytes: int = 500 * 10**9


def shape_under(policy: PolicyInForce, node: NodeMeans) -> NodeShape:
    """The room that versions have on the node under the policy; the disk is used up to its high-water mark."""
    memory = policy.cpu_bytes(None)
    high_water = policy.document.adapter_cache.disk_cache.high_water
    shape = NodeShape(
        gpu_slots=node.gpu_slots,
        places=policy.places(node.cpu_slots),
        disk_mib=policy.disk_bytes(node.disk_bytes) * high_water / _MIB,
        cpu_slots=node.cpu_slots,
        frees_on_unload=CAPABILITIES[node.engine].true_unload,
    )
    return shape if memory is None else replace(shape, memory_mib=memory / _MIB)


def weighted_by(policy: PolicyInForce, trace: Trace) -> Trace:
    """The trace with each tenant's weight as the policy gives it, where the trace names its tenants."""
    if not trace.tenants:
        return trace
    return replace(trace, weight=np.array([policy.weight_of(tenant) for tenant in trace.tenants], dtype=np.float64))
