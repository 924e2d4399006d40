from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.documents import adapter_document
from registry.api.inputs import AdapterInput
from registry.permissions import Action
from registry.selectors import get_adapter, get_tenant, list_adapters
from registry.services.adapters import create_adapter


class AdaptersView(APIView):
    def get(self, request: Request, tenant: str) -> Response:
        adapters = list_adapters(actor=actor_of(request), tenant=tenant)
        return Response({"results": [adapter_document(adapter) for adapter in adapters]})

    def post(self, request: Request, tenant: str) -> Response:
        actor = actor_of(request)
        owner = get_tenant(actor=actor, name=tenant, action=Action.CREATE_ADAPTER)
        adapter = create_adapter(actor=actor, tenant=owner, **read_input(request, AdapterInput))
        return Response(adapter_document(adapter), status=201)


class AdapterView(APIView):
    def get(self, request: Request, tenant: str, adapter: str) -> Response:
        found = get_adapter(actor=actor_of(request), tenant=tenant, name=adapter)
        return Response(adapter_document(found))
