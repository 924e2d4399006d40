from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.actors import Actor
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.rest.etags import answer, names_state, require_match
from registry.api.rest.filters import read_filters
from registry.api.rest.pagination import page
from registry.api.rest.schema import listed
from registry.api.rest.views import ApiView
from registry.permissions import Action
from registry.selectors import get_version
from releases.api.answers import AliasAnswer, AliasRevisionAnswer
from releases.api.documents import alias_document, alias_revision_document
from releases.api.inputs import AliasFilters, AliasHistoryFilters, AliasInput, RollbackInput
from releases.selectors import get_alias, list_aliases
from releases.served import list_alias_times
from releases.services.aliases import roll_back_alias, set_alias
from releases.services.revisions import NO_ALIAS_YET


class AliasesView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="list_aliases", parameters=[AliasFilters], responses={200: listed(AliasAnswer)})
    def get(self, request: Request, tenant: str) -> Response:
        aliases = list_aliases(actor=actor_of(request), tenant=tenant)
        wanted = aliases.filter(**read_filters(request, AliasFilters))
        return page(request, wanted, ordering=("name",), document=alias_document)


class AliasView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "put": Action.MOVE_ALIAS}

    @extend_schema(operation_id="get_alias", responses={200: AliasAnswer})
    def get(self, request: Request, tenant: str, alias: str) -> Response:
        return answer(alias_document(get_alias(actor=actor_of(request), tenant=tenant, name=alias)), request)

    @extend_schema(operation_id="set_alias", request=AliasInput, responses={200: AliasAnswer})
    def put(self, request: Request, tenant: str, alias: str) -> Response:
        actor = actor_of(request)
        body = read_input(request, AliasInput)
        names = {"adapter": body.pop("adapter"), "name": body.pop("version")}
        version = get_version(actor=actor, tenant=tenant, action=Action.MOVE_ALIAS, **names)
        line = version.adapter
        if body["expected_revision"] is None:
            body["expected_revision"] = _named_revision(request, actor, tenant, alias)
        moved = set_alias(actor=actor, tenant=line.tenant, name=alias, adapter=line, version=version, **body)
        return answer(alias_document(moved), request)


class AliasHistoryView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(
        operation_id="list_alias_history",
        parameters=[AliasHistoryFilters],
        responses={200: listed(AliasRevisionAnswer)},
    )
    def get(self, request: Request, tenant: str, alias: str) -> Response:
        filters = read_filters(request, AliasHistoryFilters)
        rows = list_alias_times(actor=actor_of(request), tenant=tenant, name=alias, at=filters.pop("at", None))
        wanted = rows.filter(**filters)
        return page(request, wanted, ordering=("-number",), document=alias_revision_document)


class AliasRollbackView(ApiView):
    actions = {"post": Action.ROLL_BACK_ALIAS}

    @extend_schema(operation_id="roll_back_alias", request=RollbackInput, responses={200: AliasAnswer})
    def post(self, request: Request, tenant: str, alias: str) -> Response:
        actor = actor_of(request)
        body = read_input(request, RollbackInput)
        found = get_alias(actor=actor, tenant=tenant, name=alias, action=Action.ROLL_BACK_ALIAS)
        rolled = roll_back_alias(actor=actor, alias=found, asked_at=self.came_at, **body)
        return answer(alias_document(rolled), request)


def _named_revision(request: Request, actor: Actor, tenant: str, name: str) -> int | None:
    """The revision whose ETag the caller named, for the service to find unchanged; None if none was named."""
    if not names_state(request):
        return None
    alias = list_aliases(actor=actor, tenant=tenant).filter(name=name).first()
    require_match(request, None if alias is None else alias_document(alias))
    return NO_ALIAS_YET if alias is None else alias.revision
