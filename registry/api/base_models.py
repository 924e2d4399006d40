from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.answers import BaseModelAnswer, BaseRevisionAnswer, DescribedBaseRevisionAnswer
from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.documents import base_model_document, revision_document
from registry.api.inputs import BaseModelFilters, BaseRevisionInput
from registry.api.rest.etags import answer
from registry.api.rest.filters import read_filters
from registry.api.rest.pagination import page
from registry.api.rest.schema import listed
from registry.api.rest.views import ApiView
from registry.base_models.description import BaseDescription, DescriptionError
from registry.errors import InvalidInput
from registry.permissions import Action
from registry.selectors import get_base_revision, list_base_models
from registry.services.base_models import register_base_revision


class BaseModelsView(ApiView):
    actions = {"get": Action.VIEW_PLATFORM, "post": Action.MANAGE_PLATFORM}

    @extend_schema(
        operation_id="list_base_models", parameters=[BaseModelFilters], responses={200: listed(BaseModelAnswer)}
    )
    def get(self, request: Request) -> Response:
        models = list_base_models(actor=actor_of(request))
        wanted = models.filter(**read_filters(request, BaseModelFilters))
        return page(request, wanted, ordering=("name",), document=base_model_document)

    @extend_schema(
        operation_id="register_base_revision", request=BaseRevisionInput, responses={201: BaseRevisionAnswer}
    )
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


class BaseRevisionView(ApiView):
    actions = {"get": Action.VIEW_PLATFORM}

    @extend_schema(operation_id="get_base_revision", responses={200: DescribedBaseRevisionAnswer})
    def get(self, request: Request, base_model: str, revision: str) -> Response:
        found = get_base_revision(actor=actor_of(request), base_model=base_model, label=revision)
        return answer({**revision_document(found), "description": found.description}, request)


def _description(data: object) -> BaseDescription:
    try:
        return BaseDescription.from_json(data)
    except DescriptionError as error:
        raise InvalidInput(str(error), field=f"description.{error.field}") from error
