from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.answers import AdapterAnswer
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.documents import adapter_document
from registry.api.inputs import AdapterFilters, AdapterInput
from registry.api.rest.etags import answer
from registry.api.rest.filters import read_filters
from registry.api.rest.pagination import page
from registry.api.rest.schema import listed
from registry.api.rest.views import ApiView
from registry.permissions import Action
from registry.selectors import get_adapter, get_tenant, list_adapters
from registry.services.adapters import create_adapter


class AdaptersView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "post": Action.CREATE_ADAPTER}

    @extend_schema(operation_id="list_adapters", parameters=[AdapterFilters], responses={200: listed(AdapterAnswer)})
    def get(self, request: Request, tenant: str) -> Response:
        adapters = list_adapters(actor=actor_of(request), tenant=tenant)
        wanted = adapters.filter(**read_filters(request, AdapterFilters))
        return page(request, wanted, ordering=("name",), document=adapter_document)

    @extend_schema(operation_id="create_adapter", request=AdapterInput, responses={201: AdapterAnswer})
    def post(self, request: Request, tenant: str) -> Response:
        actor = actor_of(request)
        owner = get_tenant(actor=actor, name=tenant, action=Action.CREATE_ADAPTER)
        adapter = create_adapter(actor=actor, tenant=owner, **read_input(request, AdapterInput))
        return Response(adapter_document(adapter), status=201)


class AdapterView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="get_adapter", responses={200: AdapterAnswer})
    def get(self, request: Request, tenant: str, adapter: str) -> Response:
        found = get_adapter(actor=actor_of(request), tenant=tenant, name=adapter)
        return answer(adapter_document(found), request)
