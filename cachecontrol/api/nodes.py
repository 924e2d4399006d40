from itertools import groupby
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cachecontrol.api.documents import node_document, residency_document
from cachecontrol.api.inputs import NodeInput, PlaceInput
from cachecontrol.selectors import find_node, get_node, list_nodes, list_residencies
from cachecontrol.services.nodes import NodeFacts, register_node, rotate_node_token
from cachecontrol.services.residencies import evict_version, warm_version
from registry.actors import Actor
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.models import Version
from registry.permissions import Action, require_on_platform
from registry.selectors import find_base_revision, get_version


class NodesView(APIView):
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        nodes = list(list_nodes(actor=actor))
        seen = list_residencies(actor=actor, nodes=nodes)
        held = {node: list(group) for node, group in groupby(seen, key=lambda residency: residency.node_id)}
        return Response({"results": [node_document(node, held.get(node.pk, ())) for node in nodes]})

    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        require_on_platform(actor, Action.MANAGE_PLATFORM)
        body = read_input(request, NodeInput)
        name = body.pop("name")
        revision = find_base_revision(base_model=body.pop("base_model"), label=body.pop("base_revision"))
        made = register_node(actor=actor, name=name, facts=NodeFacts(base_revision=revision, **body))
        return Response(node_document(made.node, token=made.token), status=201)


class NodeView(APIView):
    def get(self, request: Request, node: str) -> Response:
        actor = actor_of(request)
        found = get_node(actor=actor, name=node)
        return Response(node_document(found, list_residencies(actor=actor, nodes=[found])))


class RotateTokenView(APIView):
    def post(self, request: Request, node: str) -> Response:
        actor = actor_of(request)
        found = get_node(actor=actor, name=node, action=Action.MANAGE_PLATFORM)
        made = rotate_node_token(actor=actor, node=found)
        return Response(node_document(made.node, token=made.token))


class WarmView(APIView):
    def post(self, request: Request, node: str) -> Response:
        actor = actor_of(request)
        version = _operated(actor, read_input(request, PlaceInput))
        residency = warm_version(actor=actor, node=find_node(name=node), version=version)
        return Response(residency_document(residency), status=202)


class EvictView(APIView):
    def post(self, request: Request, node: str) -> Response:
        actor = actor_of(request)
        version = _operated(actor, read_input(request, PlaceInput))
        residency = evict_version(actor=actor, node=find_node(name=node), version=version)
        return Response(residency_document(residency), status=202)


def _operated(actor: Actor, body: dict[str, Any]) -> Version:
    return get_version(
        actor=actor,
        tenant=body["tenant"],
        adapter=body["adapter"],
        name=body["version"],
        action=Action.OPERATE_VERSION,
    )
