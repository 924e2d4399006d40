from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.rest.filters import read_filters
from registry.api.rest.pagination import page
from registry.api.rest.schema import listed
from registry.api.rest.views import ApiView
from registry.permissions import Action
from releases.api.answers import AliasGrantAnswer, SharedAliasAnswer
from releases.api.documents import grant_document, shared_alias_document
from releases.api.inputs import EndFilters, GrantInput
from releases.selectors import get_alias
from releases.served import get_grantee, list_grants, list_shared_aliases
from releases.services.sharing import end_grant, grant_alias


class AliasGrantsView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "post": Action.MANAGE_TENANT}

    @extend_schema(operation_id="list_alias_grants", responses={200: listed(AliasGrantAnswer)})
    def get(self, request: Request, tenant: str, alias: str) -> Response:
        found = list_grants(actor=actor_of(request), tenant=tenant, alias=alias)
        return page(request, found, ordering=("tenant__name",), document=grant_document)

    @extend_schema(operation_id="grant_alias", request=GrantInput, responses={201: AliasGrantAnswer})
    def post(self, request: Request, tenant: str, alias: str) -> Response:
        actor = actor_of(request)
        shared = get_alias(actor=actor, tenant=tenant, name=alias, action=Action.MANAGE_TENANT)
        body = read_input(request, GrantInput)
        grantee = get_grantee(actor=actor, name=body.pop("tenant"))
        made = grant_alias(actor=actor, alias=shared, tenant=grantee, **body)
        return Response(grant_document(made), status=201)


class AliasGrantView(ApiView):
    actions = {"delete": Action.MANAGE_TENANT}

    @extend_schema(operation_id="end_alias_grant", parameters=[EndFilters], responses={204: None})
    def delete(self, request: Request, tenant: str, alias: str, grantee: str) -> Response:
        actor = actor_of(request)
        shared = get_alias(actor=actor, tenant=tenant, name=alias, action=Action.MANAGE_TENANT)
        given = read_filters(request, EndFilters)
        end_grant(actor=actor, alias=shared, tenant=get_grantee(actor=actor, name=grantee), **given)
        return Response(status=204)


class SharedAliasesView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="list_shared_aliases", responses={200: listed(SharedAliasAnswer)})
    def get(self, request: Request, tenant: str) -> Response:
        found = list_shared_aliases(actor=actor_of(request), tenant=tenant)
        return page(request, found, ordering=("name",), document=shared_alias_document)
