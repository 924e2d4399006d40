"""Denied requests, as the audit log is told of them."""

from rest_framework.request import Request
from rest_framework.views import APIView

from registry.actors import Actor, How
from registry.api.authentication import BearerAuthentication
from registry.errors import LorekeeperError, NotAMember, PermissionDenied, TokenRefused
from registry.services.audit.denials import chain_for, note_denial

_SHOWN_PATH = 300


def tell_denial(request: Request, view: APIView, error: LorekeeperError) -> None:
    """Have the audit log told of ``error``, if it is one that says "you may not".

    Call it when whatever the request had begun is rolled back: in the handler of exceptions, not in the view.
    """
    if not error.is_denial:
        return
    actor = _who(request, error)
    owner = error.chain if isinstance(error, TokenRefused) else ""
    method = str(request.method)
    route = request.resolver_match.route if request.resolver_match else ""
    note_denial(
        actor=actor,
        chain=owner or chain_for(actor=actor, tenant=_tenant_of(view, error)),
        group=(error.code, method, route),
        request={"kind": "request", "id": f"{method} {request.path[:_SHOWN_PATH]}", "name": error.code},
        reason=error.message,
    )


def _tenant_of(view: APIView, error: LorekeeperError) -> str | int | None:
    """Where it was denied: the error may know, else the address says. Outsiders are told of at none."""
    if isinstance(error, NotAMember | TokenRefused):
        return None
    if isinstance(error, PermissionDenied) and error.tenant_id is not None:
        return error.tenant_id
    named: str | None = view.kwargs.get("tenant")
    return named


def _who(request: Request, error: LorekeeperError) -> Actor:
    # Asking for ``request.auth`` would authenticate again, which has just failed.
    known = None if isinstance(error, TokenRefused) else request.auth
    if isinstance(known, Actor):
        return known
    prefix = error.prefix if isinstance(error, TokenRefused) else ""
    proven = isinstance(error, TokenRefused) and bool(error.chain)
    return Actor(
        kind="anonymous",
        id=prefix,
        name="",
        token_prefix=prefix if proven else "",
        request_id=request.META.get("LOREKEEPER_REQUEST_ID", ""),
        source=request.META.get("REMOTE_ADDR", ""),
        how=_way_of(request),
    )


def _way_of(request: Request) -> How:
    return next((each.how for each in request.authenticators or () if isinstance(each, BearerAuthentication)), "")
