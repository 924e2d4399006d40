from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.rest.etags import answer, require_match
from registry.api.rest.filters import read_filters
from registry.api.rest.pagination import whole
from registry.api.rest.schema import listed_whole
from registry.api.rest.views import ApiView
from registry.permissions import Action
from registry.selectors import get_tenant
from releases.api.answers import ReleaseTemplateAnswer, WholeReleaseTemplateAnswer
from releases.api.documents import template_document, whole_template_document
from releases.api.inputs import ReleaseTemplateInput, TemplateFilters
from releases.models import ReleaseTemplate
from releases.services.templates import write_template
from releases.templates import get_release_template, list_release_templates


class ReleaseTemplatesView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="list_release_templates", responses={200: listed_whole(ReleaseTemplateAnswer)})
    def get(self, request: Request, tenant: str) -> Response:
        found = list_release_templates(actor=actor_of(request), tenant=tenant)
        return whole([template_document(template) for template in found])


class ReleaseTemplateView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "put": Action.MANAGE_RELEASE_TEMPLATE}

    @extend_schema(
        operation_id="get_release_template", parameters=[TemplateFilters], responses={200: WholeReleaseTemplateAnswer}
    )
    def get(self, request: Request, tenant: str, name: str) -> Response:
        given = read_filters(request, TemplateFilters)
        found = get_release_template(actor=actor_of(request), tenant=tenant, name=name, **given)
        return answer(whole_template_document(found), request)

    @extend_schema(
        operation_id="write_release_template",
        request=ReleaseTemplateInput,
        responses={200: WholeReleaseTemplateAnswer},
    )
    def put(self, request: Request, tenant: str, name: str) -> Response:
        actor = actor_of(request)
        owner = get_tenant(actor=actor, name=tenant, action=Action.MANAGE_RELEASE_TEMPLATE)
        body = read_input(request, ReleaseTemplateInput)

        def unchanged(in_use: ReleaseTemplate | None) -> None:
            require_match(request, None if in_use is None else whole_template_document(in_use))

        written = write_template(actor=actor, tenant=owner, name=name, unchanged=unchanged, **body)
        return answer(whole_template_document(written), request)
