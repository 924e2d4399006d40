"""Why a version is where it is, and why it left."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from cachecontrol.api.answers import EvictionAnswer, PlacementAnswer
from cachecontrol.api.documents import eviction_document, placement_document
from cachecontrol.api.inputs import EvictionFilters
from cachecontrol.explanations import explain, list_evictions
from registry.api.authentication import actor_of
from registry.api.rest.filters import read_filters
from registry.api.rest.pagination import page
from registry.api.rest.schema import listed
from registry.api.rest.views import ApiView
from registry.permissions import Action
from registry.selectors import get_version


class EvictionsView(ApiView):
    actions = {"get": Action.VIEW_PLATFORM}

    @extend_schema(operation_id="list_evictions", parameters=[EvictionFilters], responses={200: listed(EvictionAnswer)})
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        found = list_evictions(actor=actor).filter(**read_filters(request, EvictionFilters))
        return page(request, found, ordering=("-at", "-pk"), document=lambda row: eviction_document(row, actor))


class PlacementView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="explain_placement", responses={200: PlacementAnswer})
    def get(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        actor = actor_of(request)
        found = get_version(actor=actor, tenant=tenant, adapter=adapter, name=version)
        return Response(placement_document(explain(version=found), actor))
