from typing import ClassVar

from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from registry.actors import Actor, How
from registry.errors import NotAuthenticated
from registry.services.tokens import authenticate_token


class BearerAuthentication(BaseAuthentication):
    """``Authorization: Bearer lk_…``; the token becomes ``request.auth``, an ``Actor``.

    Attributes:
        how: the way callers come by, for the audit log.

    """

    how: ClassVar[How] = "api"

    def authenticate(self, request: Request) -> tuple[None, Actor] | None:
        header = request.headers.get("Authorization", "")
        if not header:
            return None
        scheme, _space, text = header.partition(" ")
        if scheme.lower() != "bearer" or not text:
            raise NotAuthenticated(_("Send the token as “Authorization: Bearer lk_…”."))
        actor = authenticate_token(
            text=text.strip(),
            request_id=request.META.get("LOREKEEPER_REQUEST_ID", ""),
            source=request.META.get("REMOTE_ADDR", ""),
            how=self.how,
        )
        return None, actor

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="lorekeeper"'


def actor_of(request: Request) -> Actor:
    """The caller of an API view. Raises ``NotAuthenticated`` when there is none."""
    if not isinstance(request.auth, Actor):
        raise NotAuthenticated(_("This needs a token: send “Authorization: Bearer lk_…”."))
    return request.auth
