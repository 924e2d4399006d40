"""What every address of the hub-compatible API shares: its form of errors, and how it names itself."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import ClassVar, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry.api.authentication import BearerAuthentication
from registry.errors import InvalidInput
from registry.permissions import Action

# Clients know these words; `RevisionNotFound` alone makes them stop using what they have in their cache.
_ERROR_CODES: Final = {"not_found": "RepoNotFound"}
_MAX_HEADER: Final = 500
_BAD_TOKEN: Final = "Invalid credentials in Authorization header"  # noqa: S105  the words that clients look for


class HubAuthentication(BearerAuthentication):
    how = "hub"


class HubView(APIView):
    """The base of every view of the hub-compatible API.

    Attributes:
        actions: the permission that each method asks for, by lower-case method; None for whoever has a token.
        commit: what the answer is about, once it is known; clients read it from a header, of errors too.

    """

    actions: ClassVar[Mapping[str, Action | None]] = {}
    authentication_classes = (HubAuthentication,)
    schema = None
    commit = ""

    def handle_exception(self, exc: Exception) -> Response:
        """Errors are what they are everywhere; only their form is the Hub's."""
        return in_hub_form(super().handle_exception(exc), had_token="Authorization" in self.request.headers)

    def dispatch(self, request: HttpRequest, *args: str, **kwargs: str) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        if self.commit:
            response.headers["X-Repo-Commit"] = self.commit
        return response


def in_hub_form(response: Response, *, had_token: bool) -> Response:
    """A problem document as clients of the Hub expect an error: ``{"error": …}`` and two headers."""
    problem = response.data or {}
    code, detail = str(problem.get("code", "error")), str(problem.get("detail", ""))
    bad_token = response.status_code == HTTPStatus.UNAUTHORIZED and had_token
    response.headers["X-Error-Code"] = _ERROR_CODES.get(code, code.replace("_", " ").title().replace(" ", ""))
    response.headers["X-Error-Message"] = _BAD_TOKEN if bad_token else _for_header(detail)
    response.data = {"error": detail}
    response.content_type = "application/json"
    return response


def refuse_pull_request(request: Request) -> None:
    """Raise ``InvalidInput`` for a push that asks for a pull request: review comes after a version is cut."""
    if request.query_params.get("create_pr"):
        raise InvalidInput(
            _("There are no pull requests here. Push to a branch, then create a tag."), field="create_pr"
        )


def repo_url(request: Request, tenant: str, name: str) -> str:
    """Where clients find a repository: below the public address, or that by which they came if it is another."""
    asked = request.build_absolute_uri("/").rstrip("/")
    same_host = urlsplit(settings.PUBLIC_URL).netloc == urlsplit(asked).netloc
    return f"{settings.PUBLIC_URL if same_host else asked}/{tenant}/{name}"


def _for_header(text: str) -> str:
    """What any server and proxy lets through: messages quote names that callers made up."""
    plain = " ".join(text.translate({ord("“"): '"', ord("”"): '"', ord("…"): "..."}).split())
    return "".join(char if " " <= char <= "~" else "?" for char in plain[:_MAX_HEADER])
