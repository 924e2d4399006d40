from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.documents import base_model_document, key_document, revision_document
from registry.api.inputs import BaseRevisionInput
from registry.base_models.description import BaseDescription, DescriptionError
from registry.errors import InvalidInput
from registry.selectors import get_base_revision, list_base_models, list_signing_keys
from registry.services.base_models import register_base_revision


class BaseModelsView(APIView):
    def get(self, request: Request) -> Response:
        models = list_base_models(actor=actor_of(request))
        return Response({"results": [base_model_document(model) for model in models]})

    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        body = read_input(request, BaseRevisionInput)
        revision = register_base_revision(
            actor=actor,
            name=body["name"],
            label=body["revision"],
            description=_description(body["description"]),
            max_rank=body["max_rank"],
        )
        return Response(revision_document(revision), status=201)


class BaseRevisionView(APIView):
    def get(self, request: Request, base_model: str, revision: str) -> Response:
        found = get_base_revision(actor=actor_of(request), base_model=base_model, label=revision)
        return Response({**revision_document(found), "description": found.description})


class KeysView(APIView):
    """Public keys; open to everybody, so that a signature can be checked without an account."""

    def get(self, request: Request) -> Response:
        return Response({"keys": [key_document(key) for key in list_signing_keys()]})


def _description(data: object) -> BaseDescription:
    try:
        return BaseDescription.from_json(data)
    except DescriptionError as error:
        raise InvalidInput(str(error), field=f"description.{error.field}") from error
