"""What an operator does with a node as a whole."""

from typing import Any, Protocol

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from cachecontrol.api.answers import NodeAnswer
from cachecontrol.api.documents import node_document
from cachecontrol.api.inputs import NodeMarkInput
from cachecontrol.models import Node
from cachecontrol.selectors import get_node
from cachecontrol.services.lifecycle import cordon_node, drain_node, recycle_node, resume_node, uncordon_node
from registry.actors import Actor
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.rest.views import ApiView
from registry.permissions import Action


class _Operation(Protocol):
    def __call__(self, *, actor: Actor, node: Node, reason: str) -> Node: ...


class CordonView(ApiView):
    actions = {"post": Action.MANAGE_PLATFORM}

    @extend_schema(operation_id="cordon_node", request=NodeMarkInput, responses={200: NodeAnswer})
    def post(self, request: Request, node: str) -> Response:
        return _operate(request, node, cordon_node)


class UncordonView(ApiView):
    actions = {"post": Action.MANAGE_PLATFORM}

    @extend_schema(operation_id="uncordon_node", request=NodeMarkInput, responses={200: NodeAnswer})
    def post(self, request: Request, node: str) -> Response:
        return _operate(request, node, uncordon_node)


class DrainView(ApiView):
    actions = {"post": Action.MANAGE_PLATFORM}

    @extend_schema(operation_id="drain_node", request=NodeMarkInput, responses={200: NodeAnswer})
    def post(self, request: Request, node: str) -> Response:
        return _operate(request, node, drain_node)


class ResumeView(ApiView):
    actions = {"post": Action.MANAGE_PLATFORM}

    @extend_schema(operation_id="resume_node", request=NodeMarkInput, responses={200: NodeAnswer})
    def post(self, request: Request, node: str) -> Response:
        return _operate(request, node, resume_node)


class RecycleView(ApiView):
    actions = {"post": Action.MANAGE_PLATFORM}

    @extend_schema(operation_id="recycle_node", request=NodeMarkInput, responses={202: NodeAnswer})
    def post(self, request: Request, node: str) -> Response:
        return _operate(request, node, recycle_node, status=202)


def _operate(request: Request, name: str, operation: _Operation, *, status: int = 200) -> Response:
    actor = actor_of(request)
    body: dict[str, Any] = read_input(request, NodeMarkInput)
    found = get_node(actor=actor, name=name, action=Action.MANAGE_PLATFORM)
    operation(actor=actor, node=found, **body)
    shown = get_node(actor=actor, name=name)
    return Response(node_document(shown, shown.residencies.all(), actor=actor), status=status)
