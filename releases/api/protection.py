from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.rest.etags import answer, require_match
from registry.api.rest.views import ApiView
from registry.errors import NotFound
from registry.permissions import Action
from releases.api.answers import ProtectionAnswer
from releases.api.documents import protection_document
from releases.api.inputs import ProtectionInput
from releases.models import AliasProtection
from releases.selectors import get_alias
from releases.services.protection import protect_alias, unprotect_alias


class AliasProtectionView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "put": Action.PROTECT_ALIAS, "delete": Action.PROTECT_ALIAS}

    @extend_schema(operation_id="get_alias_protection", responses={200: ProtectionAnswer})
    def get(self, request: Request, tenant: str, alias: str) -> Response:
        found = get_alias(actor=actor_of(request), tenant=tenant, name=alias)
        if not hasattr(found, "protection"):
            raise NotFound(_("%(alias)s is not protected.") % {"alias": found}, field="alias")
        return answer(protection_document(found.protection), request)

    @extend_schema(operation_id="protect_alias", request=ProtectionInput, responses={200: ProtectionAnswer})
    def put(self, request: Request, tenant: str, alias: str) -> Response:
        actor = actor_of(request)
        found = get_alias(actor=actor, tenant=tenant, name=alias, action=Action.PROTECT_ALIAS)
        body = read_input(request, ProtectionInput)
        kept = protect_alias(actor=actor, alias=found, unchanged=lambda seen: _require_same(request, seen), **body)
        return answer(protection_document(kept), request)

    @extend_schema(operation_id="unprotect_alias", responses={204: None})
    def delete(self, request: Request, tenant: str, alias: str) -> Response:
        actor = actor_of(request)
        found = get_alias(actor=actor, tenant=tenant, name=alias, action=Action.PROTECT_ALIAS)
        unprotect_alias(actor=actor, alias=found, unchanged=lambda seen: _require_same(request, seen))
        return Response(status=204)


def _require_same(request: Request, protection: AliasProtection | None) -> None:
    require_match(request, None if protection is None else protection_document(protection))
