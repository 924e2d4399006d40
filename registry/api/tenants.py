from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.actors import Actor
from registry.api.answers import MemberAnswer, NewTokenAnswer, TenantAnswer, TokenAnswer, WhoAmIAnswer
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.documents import member_document, tenant_document, token_document
from registry.api.inputs import MemberFilters, MemberInput, TenantFilters, TenantInput, TokenFilters, TokenInput
from registry.api.rest.filters import read_filters
from registry.api.rest.pagination import page
from registry.api.rest.schema import listed
from registry.api.rest.views import ApiView
from registry.errors import InvalidInput
from registry.models import Tenant
from registry.permissions import Action
from registry.selectors import get_tenant, list_members, list_tenant_tokens, list_tenants
from registry.services.tenants import add_member, create_tenant, remove_member
from registry.services.tokens import create_tenant_token, revoke_token
from registry.states import Role, Scope, TokenKind


class WhoAmIView(ApiView):
    actions = {"get": None}

    @extend_schema(operation_id="who_am_i", responses={200: WhoAmIAnswer})
    def get(self, request: Request) -> Response:
        return Response(_who(actor_of(request)))


class TenantsView(ApiView):
    actions = {"get": Action.VIEW_PLATFORM, "post": Action.MANAGE_PLATFORM}

    @extend_schema(operation_id="list_tenants", parameters=[TenantFilters], responses={200: listed(TenantAnswer)})
    def get(self, request: Request) -> Response:
        tenants = list_tenants(actor=actor_of(request)).filter(**read_filters(request, TenantFilters))
        return page(request, tenants, ordering=("name",), document=tenant_document)

    @extend_schema(operation_id="create_tenant", request=TenantInput, responses={201: TenantAnswer})
    def post(self, request: Request) -> Response:
        created = create_tenant(actor=actor_of(request), **read_input(request, TenantInput))
        return Response(tenant_document(created), status=201)


class MembersView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "post": Action.MANAGE_TENANT}

    @extend_schema(operation_id="list_members", parameters=[MemberFilters], responses={200: listed(MemberAnswer)})
    def get(self, request: Request, tenant: str) -> Response:
        members = list_members(actor=actor_of(request), tenant=tenant)
        wanted = members.filter(**read_filters(request, MemberFilters))
        return page(request, wanted, ordering=("person__email", "role"), document=member_document)

    @extend_schema(operation_id="add_member", request=MemberInput, responses={201: MemberAnswer})
    def post(self, request: Request, tenant: str) -> Response:
        actor = actor_of(request)
        body = read_input(request, MemberInput)
        membership = add_member(
            actor=actor, tenant=_managed(actor, tenant), email=body["email"], role=Role(body["role"]), name=body["name"]
        )
        return Response(member_document(membership), status=201)


class MemberRoleView(ApiView):
    actions = {"delete": Action.MANAGE_TENANT}

    @extend_schema(operation_id="remove_member", responses={204: None})
    def delete(self, request: Request, tenant: str, email: str, role: str) -> Response:
        actor = actor_of(request)
        remove_member(actor=actor, tenant=_managed(actor, tenant), email=email, role=_role(role))
        return Response(status=204)


class TokensView(ApiView):
    actions = {"get": Action.MANAGE_TENANT, "post": Action.MANAGE_TENANT}

    @extend_schema(operation_id="list_tokens", parameters=[TokenFilters], responses={200: listed(TokenAnswer)})
    def get(self, request: Request, tenant: str) -> Response:
        tokens = list_tenant_tokens(actor=actor_of(request), tenant=tenant)
        wanted = tokens.filter(**read_filters(request, TokenFilters))
        return page(request, wanted, ordering=("created_at", "pk"), document=token_document)

    @extend_schema(operation_id="create_token", request=TokenInput, responses={201: NewTokenAnswer})
    def post(self, request: Request, tenant: str) -> Response:
        actor = actor_of(request)
        body = read_input(request, TokenInput)
        days = body["expires_in_days"]
        made = create_tenant_token(
            actor=actor,
            tenant=_managed(actor, tenant),
            name=body["name"],
            kind=TokenKind(body["kind"]),
            scopes=[Scope(scope) for scope in body["scopes"]],
            person_email=body["person_email"],
            expires_at=None if days is None else timezone.now() + timedelta(days=days),
        )
        return Response(token_document(made.token, made.text), status=201)


class TokenView(ApiView):
    actions = {"delete": Action.MANAGE_TENANT}

    @extend_schema(operation_id="revoke_token", responses={204: None})
    def delete(self, request: Request, tenant: str, prefix: str) -> Response:
        actor = actor_of(request)
        revoke_token(actor=actor, tenant=_managed(actor, tenant), prefix=prefix)
        return Response(status=204)


def _managed(actor: Actor, tenant: str) -> Tenant:
    return get_tenant(actor=actor, name=tenant, action=Action.MANAGE_TENANT)


def _role(name: str) -> Role:
    try:
        return Role(name)
    except ValueError:
        raise InvalidInput(_("There is no role named %(name)s.") % {"name": name}, field="role") from None


def _who(actor: Actor) -> dict[str, Any]:
    names = dict(Tenant.objects.filter(pk__in=list(actor.roles)).values_list("pk", "name"))
    own = Tenant.objects.filter(pk=actor.tenant_id).values_list("name", flat=True).first() if actor.tenant_id else None
    return {
        "person": {"email": actor.id, "name": actor.name} if actor.kind == "person" else None,
        "kind": actor.kind,
        "tenant": own,
        "scopes": sorted(actor.scopes),
        "roles": {names[pk]: sorted(roles) for pk, roles in actor.roles.items() if pk in names},
        "is_platform_admin": actor.is_platform_admin,
    }
