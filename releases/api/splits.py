from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.actors import Actor
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.rest.etags import answer, require_match
from registry.api.rest.filters import read_filters
from registry.api.rest.views import ApiView
from registry.models import Version
from registry.permissions import Action
from registry.selectors import get_version
from releases.api.answers import AliasAnswer
from releases.api.documents import alias_document
from releases.api.inputs import EndFilters, SplitInput
from releases.models import Alias
from releases.selectors import get_alias
from releases.services.splits import SplitWish, clear_split, set_split


class AliasSplitView(ApiView):
    actions = {"put": Action.MOVE_ALIAS, "delete": Action.MOVE_ALIAS}

    @extend_schema(operation_id="set_alias_split", request=SplitInput, responses={200: AliasAnswer})
    def put(self, request: Request, tenant: str, alias: str) -> Response:
        actor = actor_of(request)
        body = read_input(request, SplitInput)
        facts = {name: body.pop(name) for name in ("expected_revision", "reason")}
        found = get_alias(actor=actor, tenant=tenant, name=alias, action=Action.MOVE_ALIAS)
        wish = _wish(actor, tenant, body)
        set_split(actor=actor, alias=found, wish=wish, unchanged=lambda seen: _require_same(request, seen), **facts)
        return answer(alias_document(get_alias(actor=actor, tenant=tenant, name=alias)), request)

    @extend_schema(operation_id="clear_alias_split", parameters=[EndFilters], responses={200: AliasAnswer})
    def delete(self, request: Request, tenant: str, alias: str) -> Response:
        actor, given = actor_of(request), read_filters(request, EndFilters)
        found = get_alias(actor=actor, tenant=tenant, name=alias, action=Action.MOVE_ALIAS)
        whole = clear_split(actor=actor, alias=found, unchanged=lambda seen: _require_same(request, seen), **given)
        return answer(alias_document(whole), request)


def _require_same(request: Request, alias: Alias) -> None:
    require_match(request, alias_document(alias))


def _wish(actor: Actor, tenant: str, body: dict[str, Any]) -> SplitWish:
    adapter, version = body.pop("adapter"), body.pop("version")
    shadow_adapter, shadow_version = body.pop("shadow_adapter"), body.pop("shadow_version")

    def named(line: str, name: str) -> Version:
        return get_version(actor=actor, tenant=tenant, adapter=line, name=name, action=Action.MOVE_ALIAS)

    shadow = named(shadow_adapter or adapter, shadow_version) if shadow_version else None
    allow, deny = tuple(body.pop("allow")), tuple(body.pop("deny"))
    return SplitWish(candidate=named(adapter, version), shadow=shadow, allow=allow, deny=deny, **body)
