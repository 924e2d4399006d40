"""Denied pages, as the audit log is told of them."""

from django.http import HttpRequest

from registry.actors import Actor
from registry.audit import PLATFORM_CHAIN
from registry.errors import LorekeeperError, NotAMember, NotAuthenticated, PermissionDenied
from registry.services.audit.denials import chain_for, note_denial
from registry.web.reader import actor_of

_SHOWN_PATH = 300


def tell_page_denial(request: HttpRequest, error: LorekeeperError) -> None:
    """Have the audit log told of ``error``, if it is one that says "you may not".

    Call it when whatever the request had begun is rolled back.
    """
    if not error.is_denial:
        return
    actor = who(request)
    method, route = str(request.method), request.resolver_match.route if request.resolver_match else ""
    note_denial(
        actor=actor,
        chain=chain_for(actor=actor, tenant=_tenant_of(request, error)),
        group=(error.code, method, route),
        request={"kind": "request", "id": f"{method} {request.path[:_SHOWN_PATH]}", "name": error.code},
        reason=error.message,
    )


def tell_failed_sign_in(request: HttpRequest, *, email: str) -> None:
    """Have the audit log told that somebody failed to sign in as ``email``; told and counted like denied requests."""
    anonymous = _nobody(request)
    note_denial(
        actor=anonymous,
        chain=PLATFORM_CHAIN,
        group=("sign_in_failed",),
        request={"kind": "sign_in", "id": email[:_SHOWN_PATH], "name": "sign_in_failed"},
        reason="",
    )


def who(request: HttpRequest) -> Actor:
    """The signed-in person, or somebody without an account at the request's address."""
    try:
        return actor_of(request)
    except NotAuthenticated:
        return _nobody(request)


def _nobody(request: HttpRequest) -> Actor:
    return Actor(
        kind="anonymous",
        id="",
        name="",
        request_id=request.META.get("LOREKEEPER_REQUEST_ID", ""),
        source=request.META.get("REMOTE_ADDR", ""),
        how="web",
    )


def _tenant_of(request: HttpRequest, error: LorekeeperError) -> str | int | None:
    if isinstance(error, NotAMember):
        return None
    if isinstance(error, PermissionDenied) and error.tenant_id is not None:
        return error.tenant_id
    named: str | None = request.resolver_match.kwargs.get("tenant") if request.resolver_match else None
    return named
