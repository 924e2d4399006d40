"""``Idempotency-Key``: a POST that comes again with the same key is answered as it was the first time.

What was changed and the answer kept of it are one transaction, so a killed process has done both or neither; views that
work in several transactions (``in_steps``) have to be repeatable themselves. A refusal changes nothing, so it is not
kept: the same key may be tried again.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.db import transaction
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from registry.actors import Actor
from registry.errors import InvalidInput
from registry.services.idempotency import find_answer, keep_answer, only_request_with

if TYPE_CHECKING:
    from registry.api.rest.views import ApiView

HEADER: Final = "Idempotency-Key"
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
_NONCE_BYTES: Final = 12
_ERRORS_FROM: Final = 400

View = TypeVar("View", bound="ApiView")
P = ParamSpec("P")
Method = Callable[Concatenate[View, Request, P], HttpResponseBase]


def answered_once(post: "Method[View, P]") -> "Method[View, P]":
    """A view's ``post`` that honours the header; without the header it is as it was."""

    @wraps(post)
    def once(view: View, request: Request, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if HEADER not in request.headers or not isinstance(request.auth, Actor):
            return post(view, request, *args, **kwargs)
        names = {"owner": request.auth.token_prefix, "key": _key_of(request)}
        fingerprint = _fingerprint(request, view.idempotent_content(request))
        with only_request_with(**names):
            kept = find_answer(**names, fingerprint=fingerprint)
            if kept is not None:
                return _replayed(_opened(request, kept))
            with _transaction(view):
                response = post(view, request, *args, **kwargs)
                if isinstance(response, Response) and response.status_code < _ERRORS_FROM:
                    keep_answer(**names, fingerprint=fingerprint, sealed=_sealed(request, _facts(response)))
            return response

    return once


def _transaction(view: "ApiView") -> AbstractContextManager[Any]:
    return nullcontext() if view.in_steps else transaction.atomic()


def _key_of(request: Request) -> str:
    key = request.headers[HEADER]
    if _KEY.fullmatch(key) is None:
        raise InvalidInput(_("An Idempotency-Key is 1 to 255 printable ASCII characters without spaces."), field=HEADER)
    return key


def _fingerprint(request: Request, content: bytes) -> str:
    digest = hashlib.sha256(request.get_full_path().encode() + b"\0")
    digest.update(content)
    return digest.hexdigest()


def _facts(response: Response) -> dict[str, Any]:
    """All that makes the answer the same again; ``data`` as text, since it is given back byte for byte."""
    headers = {name: value for name, value in response.headers.items() if name in {"ETag", "Location"}}
    body = b"" if response.data is None else JSONRenderer().render(response.data)
    return {"status": response.status_code, "headers": headers, "body": body.decode()}


def _replayed(facts: dict[str, Any]) -> HttpResponse:
    response = HttpResponse(facts["body"], status=facts["status"], content_type="application/json")
    for name, value in facts["headers"].items():
        response[name] = value
    response["Idempotent-Replayed"] = "true"
    return response


def _sealed(request: Request, facts: dict[str, Any]) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + _cipher(request).encrypt(nonce, json.dumps(facts).encode(), None)


def _opened(request: Request, sealed: bytes) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(_cipher(request).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None))
    return facts


def _cipher(request: Request) -> AESGCM:
    """A key that only the holder of the token can make again: the database knows the token's plain SHA-256 alone."""
    _scheme, _space, token = request.headers["Authorization"].partition(" ")
    return AESGCM(hashlib.sha256(b"lorekeeper idempotent answer\0" + token.strip().encode()).digest())
