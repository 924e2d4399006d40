"""Grants: short-lived signed permissions for one node to load, fetch or evict one version (JWT, ES256)."""

import base64
import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import jwt
import rfc8785
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from registry.signing.bundle import ReleaseClaims
from registry.signing.errors import (
    GrantError,
    GrantExpired,
    GrantForOtherCommand,
    GrantForOtherNode,
    GrantNotYetValid,
    NameMismatch,
)
from registry.signing.keys import KeyRing
from registry.signing.ports import Signer

MAX_LIFETIME = timedelta(minutes=10)
# Clocks of web and nodes may differ by this much in the direction that only delays the start of a grant.
CLOCK_SKEW = timedelta(seconds=30)
MAX_GRANT_CHARACTERS = 4096
_ISSUER = "lorekeeper"
_TYPE = "lorekeeper-grant+jwt"
LOAD = "load"
FETCH = "fetch"
EVICT = "evict"
_TEXT_CLAIMS = (
    "action",
    "version_id",
    "engine_name",
    "tenant",
    "adapter",
    "version",
    "base_revision",
    "root_digest",
    "command",
)
_REQUIRED = ["iss", "aud", "iat", "nbf", "exp", "jti", "generation", *_TEXT_CLAIMS]
_COORDINATE_BYTES = 32

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One node may do one thing with one version.

    Attributes:
        node: the node's name.
        version_id: UUID of the version as text.
        base_revision: digest of the base model revision (hex).
        root_digest: digest of the version's files (hex).
        generation: of the node's residency; older ones are void.
        expires_at: with time zone; whole seconds count.
        command: `command_digest` of the command that brings it.
        action: LOAD, FETCH (the files alone) or EVICT.

    """

    node: str
    version_id: str
    engine_name: str
    tenant: str
    adapter: str
    version: str
    base_revision: str
    root_digest: str
    generation: int
    expires_at: datetime
    command: str
    action: str = LOAD


def command_digest(command: Mapping[str, object]) -> str:
    """What a grant says of its command: SHA-256 in lower-case hex over the RFC 8785 form of all but its `grant`.

    Raises:
        GrantError: it holds what that form can't say, such as NaN or an integer beyond 2**53.

    """
    rest = {name: value for name, value in command.items() if name != "grant"}
    try:
        canonical: bytes = rfc8785.dumps(rest)
    except (ValueError, RecursionError) as error:
        raise GrantError(f"no grant can be for this command: {error}") from error
    return hashlib.sha256(canonical).hexdigest()


def issue_grant(signer: Signer, grant: Grant, *, now: datetime | None = None) -> str:
    """Sign `grant` and return it as a compact JWT.

    Raises:
        GrantError: it would be expired already, or live longer than `MAX_LIFETIME`.

    """
    issued = now or datetime.now(UTC)
    if not timedelta(0) < grant.expires_at - issued <= MAX_LIFETIME:
        raise GrantError(f"a grant lives at most {MAX_LIFETIME}, this one would for {grant.expires_at - issued}")
    claims: dict[str, object] = {name: getattr(grant, name) for name in _TEXT_CLAIMS}
    claims |= {
        "iss": _ISSUER,
        "aud": grant.node,
        "iat": int(issued.timestamp()),
        "nbf": int(issued.timestamp()),
        "exp": int(grant.expires_at.timestamp()),
        "jti": uuid.uuid4().hex,
        "generation": grant.generation,
    }
    header = {"alg": "ES256", "kid": signer.key_id, "typ": _TYPE}
    signed = f"{_encode_json(header)}.{_encode_json(claims)}"
    return f"{signed}.{_encode(_raw_signature(signer.sign(signed.encode())))}"


def check_grant(token: str, keys: KeyRing, *, node: str, now: datetime | None = None) -> Grant:
    """Check a grant and return it.

    Raises:
        UnknownKey: signed by a key that is not trusted, or was not when the grant was issued.
        GrantExpired, GrantNotYetValid, GrantForOtherNode: signed, but not for here and now.
        GrantError: not a grant, or changed since it was signed.

    """
    present = now or datetime.now(UTC)
    key = keys.find(_key_id(token))
    try:
        # Times are checked below against `now`; PyJWT knows only the machine's clock.
        claims = jwt.decode(
            token,
            key.public_key,
            algorithms=["ES256"],
            audience=node,
            issuer=_ISSUER,
            options={"require": _REQUIRED, "verify_exp": False, "verify_nbf": False, "verify_iat": False},
        )
    except jwt.InvalidAudienceError as error:
        raise GrantForOtherNode(f"the grant is not for the node {node!a}", field="node") from error
    except jwt.PyJWTError as error:
        raise GrantError(f"the grant does not hold: {error}") from error
    _check_times(claims, present)
    key.require_valid_at(datetime.fromtimestamp(claims["iat"], tz=UTC))
    return _grant_from(claims)


def match_release(grant: Grant, release: ReleaseClaims) -> None:
    """Check that a validly signed release is the very one that was granted.

    Raises:
        NameMismatch: with the first claim that differs.

    """
    for name in ("tenant", "adapter", "version", "base_revision", "root_digest", "engine_name"):
        expected, found = getattr(grant, name), getattr(release, name)
        if expected != found:
            raise NameMismatch(name, expected=expected, found=found)


def match_command(grant: Grant, digest: str) -> None:
    """Check that a command with this `command_digest` is the very one that was granted.

    Raises:
        GrantForOtherCommand: something in it is another.

    """
    if grant.command != digest:
        raise GrantForOtherCommand("the command is not the one that was granted: it was changed on its way to the node")


def _key_id(token: str) -> str:
    """The key that a token says it is signed with, once its form is exactly the one in which grants are written."""
    try:
        header = jwt.get_unverified_header(token[: MAX_GRANT_CHARACTERS + 1])
        signature = token.rpartition(".")[2]
        exact = _encode(base64.urlsafe_b64decode(signature + "==")) == signature
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise GrantError("not a grant: no readable JWT") from error
    key_id = header.get("kid")
    if not isinstance(key_id, str) or header != {"alg": "ES256", "kid": key_id, "typ": _TYPE}:
        raise GrantError("not a grant: its header is another than grants have")
    # Base64 has spare bits that no signature covers.
    if not exact or len(token) > MAX_GRANT_CHARACTERS:
        raise GrantError("not a grant: not in the form in which grants are written")
    return key_id


def _check_times(claims: dict[str, Any], now: datetime) -> None:
    seconds = now.timestamp()
    expires, begins, issued = (_claim(claims, name, int) for name in ("exp", "nbf", "iat"))
    if seconds >= expires:
        raise GrantExpired(f"the grant expired {int(seconds) - expires} s ago", field="expires_at")
    if max(begins, issued) > seconds + CLOCK_SKEW.total_seconds():
        raise GrantNotYetValid(f"the grant begins in {begins - int(seconds)} s: check this machine's clock")
    if expires - issued > MAX_LIFETIME.total_seconds():
        raise GrantError(f"the grant lives longer than {MAX_LIFETIME}", field="expires_at")


def _grant_from(claims: dict[str, Any]) -> Grant:
    text = {name: _claim(claims, name, str) for name in _TEXT_CLAIMS}
    return Grant(
        node=_claim(claims, "aud", str),
        generation=_claim(claims, "generation", int),
        expires_at=datetime.fromtimestamp(_claim(claims, "exp", int), tz=UTC),
        **text,
    )


def _claim(claims: dict[str, Any], name: str, kind: type[T]) -> T:
    value = claims.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise GrantError(f"the grant's claim '{name}' is not of the kind {kind.__name__}", field=name)
    return value


def _raw_signature(der: bytes) -> bytes:
    """JWS writes an ECDSA signature as r and s of 32 bytes each, not as DER."""
    return b"".join(number.to_bytes(_COORDINATE_BYTES, "big") for number in decode_dss_signature(der))


def _encode_json(document: Mapping[str, object]) -> str:
    return _encode(json.dumps(document, separators=(",", ":"), sort_keys=True).encode())


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
