from cachecontrol.models.nodes import Node
from cachecontrol.models.requests import GatewayRequest
from cachecontrol.models.residencies import Residency

__all__ = ["GatewayRequest", "Node", "Residency"]
