from cachecontrol.models.evictions import Eviction
from cachecontrol.models.heat import HeatCursor, TenantHeat, VersionHeat
from cachecontrol.models.loads import Lease, LoadFailure, LoadRequest
from cachecontrol.models.nodes import Node
from cachecontrol.models.policies import CachePolicy
from cachecontrol.models.requests import GatewayFeedback, GatewayRequest, GatewayShadow
from cachecontrol.models.residencies import Residency
from cachecontrol.models.rules import TenantRules

__all__ = [
    "CachePolicy",
    "Eviction",
    "GatewayFeedback",
    "GatewayRequest",
    "GatewayShadow",
    "HeatCursor",
    "Lease",
    "LoadFailure",
    "LoadRequest",
    "Node",
    "Residency",
    "TenantHeat",
    "TenantRules",
    "VersionHeat",
]
