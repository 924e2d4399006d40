"""Repositories: making them, and what is told of them."""

from typing import ClassVar

from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.hub.base import HubView, in_hub_form, repo_url
from registry.api.hub.documents import commit_document, info_document, refs_document, whoami_document
from registry.api.hub.inputs import RepoInput, YamlInput
from registry.errors import InvalidInput, NameTaken
from registry.hub.names import MAIN
from registry.permissions import Action
from registry.selectors import get_tenant, list_tenants
from registry.services.hub.drafts import create_repo, delete_repo
from registry.services.hub.repos import default_tenant, find_repo, writable_repo
from registry.services.hub.revisions import list_history, list_refs, resolve_revision


class WhoAmIView(HubView):
    actions: ClassVar = {"get": Action.VIEW_PLATFORM}

    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        return Response(whoami_document(actor, list_tenants(actor=actor)))


class YamlView(HubView):
    """Clients have the head of a README looked at before they push; nothing here reads it, so nothing is wrong."""

    actions: ClassVar = {"post": None}

    def post(self, request: Request) -> Response:
        actor_of(request)
        read_input(request, YamlInput)
        return Response({"errors": [], "warnings": []})


class CreateRepoView(HubView):
    actions: ClassVar = {"post": Action.CREATE_ADAPTER}

    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        body = read_input(request, RepoInput)
        _check_kind(body["type"])
        tenant = body["organization"] or default_tenant(actor=actor)
        owner = get_tenant(actor=actor, name=tenant, action=Action.CREATE_ADAPTER)
        answer = {"url": repo_url(request, tenant, body["name"]), "name": f"{tenant}/{body['name']}"}
        try:
            create_repo(actor=actor, tenant=owner, name=body["name"])
        except NameTaken as error:
            # Clients that don't mind go on with the address in this very answer.
            return _taken(error, answer)
        return Response(answer)


class DeleteRepoView(HubView):
    actions: ClassVar = {"delete": Action.UPLOAD_VERSION}

    def delete(self, request: Request) -> Response:
        actor = actor_of(request)
        body = read_input(request, RepoInput)
        _check_kind(body["type"])
        tenant = body["organization"] or default_tenant(actor=actor)
        delete_repo(actor=actor, repo=writable_repo(actor=actor, tenant=tenant, name=body["name"]))
        return Response({})


class InfoView(HubView):
    actions: ClassVar = {"get": Action.VIEW_TENANT}

    def get(self, request: Request, tenant: str, repo: str, revision: str = MAIN) -> Response:
        actor = actor_of(request)
        found = find_repo(actor=actor, tenant=tenant, name=repo)
        tree = resolve_revision(actor=actor, repo=found, revision=revision)
        self.commit = tree.commit
        return Response(info_document(found, tree))


class AuthCheckView(HubView):
    actions: ClassVar = {"get": Action.VIEW_TENANT}

    def get(self, request: Request, tenant: str, repo: str) -> Response:
        find_repo(actor=actor_of(request), tenant=tenant, name=repo)
        return Response({})


class RefsView(HubView):
    actions: ClassVar = {"get": Action.VIEW_TENANT}

    def get(self, request: Request, tenant: str, repo: str) -> Response:
        actor = actor_of(request)
        found = find_repo(actor=actor, tenant=tenant, name=repo)
        return Response(refs_document(list_refs(actor=actor, repo=found)))


class CommitsView(HubView):
    actions: ClassVar = {"get": Action.VIEW_TENANT}

    def get(self, request: Request, tenant: str, repo: str, revision: str) -> Response:
        actor = actor_of(request)
        found = find_repo(actor=actor, tenant=tenant, name=repo)
        history = list_history(actor=actor, repo=found, revision=revision)
        return Response([commit_document(tree) for tree in history])


def _check_kind(kind: str | None) -> None:
    if kind not in {None, "model"}:
        raise InvalidInput(_("Lorekeeper keeps adapters, and no %(kind)ss.") % {"kind": kind}, field="type")


def _taken(error: NameTaken, answer: dict[str, str]) -> Response:
    response = in_hub_form(Response({"code": error.code, "detail": str(error)}, status=409), had_token=True)
    response.data = {**response.data, **answer}
    return response
