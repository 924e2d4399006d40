from functools import partial
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from cachecontrol.api.answers import NewNodeAnswer, NodeAnswer, ResidencyAnswer
from cachecontrol.api.documents import node_document, node_documents, residency_document
from cachecontrol.api.inputs import EvictInput, NodeFilters, NodeInput, PlaceInput
from cachecontrol.selectors import find_node, get_node, list_nodes
from cachecontrol.services.nodes import NodeFacts, register_node, rotate_node_token
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.states import Desired
from registry.actors import Actor
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.rest.etags import answer
from registry.api.rest.filters import read_filters
from registry.api.rest.pagination import page_at_once
from registry.api.rest.schema import listed
from registry.api.rest.views import ApiView
from registry.models import Version
from registry.permissions import Action, require_on_platform
from registry.selectors import find_base_revision, get_version


class NodesView(ApiView):
    actions = {"get": Action.VIEW_PLATFORM, "post": Action.MANAGE_PLATFORM}

    @extend_schema(operation_id="list_nodes", parameters=[NodeFilters], responses={200: listed(NodeAnswer)})
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        nodes = list_nodes(actor=actor).filter(**read_filters(request, NodeFilters))
        return page_at_once(request, nodes, ordering=("name",), documents=partial(node_documents, actor=actor))

    @extend_schema(operation_id="register_node", request=NodeInput, responses={201: NewNodeAnswer})
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        require_on_platform(actor, Action.MANAGE_PLATFORM)
        body = read_input(request, NodeInput)
        name = body.pop("name")
        revision = find_base_revision(base_model=body.pop("base_model"), label=body.pop("base_revision"))
        made = register_node(actor=actor, name=name, facts=NodeFacts(base_revision=revision, **body))
        return Response(node_document(made.node, actor=actor, token=made.token), status=201)


class NodeView(ApiView):
    actions = {"get": Action.VIEW_PLATFORM}

    @extend_schema(operation_id="get_node", responses={200: NodeAnswer})
    def get(self, request: Request, node: str) -> Response:
        actor = actor_of(request)
        found = get_node(actor=actor, name=node)
        return answer(node_document(found, found.residencies.all(), actor=actor), request)


class RotateTokenView(ApiView):
    actions = {"post": Action.MANAGE_PLATFORM}

    @extend_schema(operation_id="rotate_node_token", request=None, responses={200: NewNodeAnswer})
    def post(self, request: Request, node: str) -> Response:
        actor = actor_of(request)
        found = get_node(actor=actor, name=node, action=Action.MANAGE_PLATFORM)
        made = rotate_node_token(actor=actor, node=found)
        return Response(node_document(made.node, actor=actor, token=made.token))


class WarmView(ApiView):
    actions = {"post": Action.OPERATE_VERSION}

    @extend_schema(operation_id="warm_version", request=PlaceInput, responses={202: ResidencyAnswer})
    def post(self, request: Request, node: str) -> Response:
        actor = actor_of(request)
        version = _operated(actor, read_input(request, PlaceInput))
        residency = warm_version(actor=actor, node=find_node(name=node), version=version)
        return Response(residency_document(residency), status=202)


class EvictView(ApiView):
    actions = {"post": Action.OPERATE_VERSION}

    @extend_schema(operation_id="evict_version", request=EvictInput, responses={202: ResidencyAnswer})
    def post(self, request: Request, node: str) -> Response:
        actor = actor_of(request)
        body = read_input(request, EvictInput)
        version, to = _operated(actor, body), Desired(body["to"])
        residency = evict_version(actor=actor, node=find_node(name=node), version=version, to=to)
        return Response(residency_document(residency), status=202)


def _operated(actor: Actor, body: dict[str, Any]) -> Version:
    return get_version(
        actor=actor,
        tenant=body["tenant"],
        adapter=body["adapter"],
        name=body["version"],
        action=Action.OPERATE_VERSION,
    )
