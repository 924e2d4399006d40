from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.permissions import Action
from registry.selectors import get_version
from releases.api.documents import alias_document, alias_revision_document
from releases.api.inputs import AliasInput, RollbackInput
from releases.selectors import get_alias, list_alias_history, list_aliases
from releases.services.aliases import roll_back_alias, set_alias


class AliasesView(APIView):
    def get(self, request: Request, tenant: str) -> Response:
        aliases = list_aliases(actor=actor_of(request), tenant=tenant)
        return Response({"results": [alias_document(alias) for alias in aliases]})


class AliasView(APIView):
    def get(self, request: Request, tenant: str, alias: str) -> Response:
        return Response(alias_document(get_alias(actor=actor_of(request), tenant=tenant, name=alias)))

    def put(self, request: Request, tenant: str, alias: str) -> Response:
        actor = actor_of(request)
        body = read_input(request, AliasInput)
        names = {"adapter": body.pop("adapter"), "name": body.pop("version")}
        version = get_version(actor=actor, tenant=tenant, action=Action.MOVE_ALIAS, **names)
        line = version.adapter
        moved = set_alias(actor=actor, tenant=line.tenant, name=alias, adapter=line, version=version, **body)
        return Response(alias_document(moved))


class AliasHistoryView(APIView):
    def get(self, request: Request, tenant: str, alias: str) -> Response:
        rows = list_alias_history(actor=actor_of(request), tenant=tenant, name=alias)
        return Response({"results": [alias_revision_document(row) for row in rows]})


class AliasRollbackView(APIView):
    def post(self, request: Request, tenant: str, alias: str) -> Response:
        actor = actor_of(request)
        body = read_input(request, RollbackInput)
        found = get_alias(actor=actor, tenant=tenant, name=alias, action=Action.ROLL_BACK_ALIAS)
        return Response(alias_document(roll_back_alias(actor=actor, alias=found, **body)))
