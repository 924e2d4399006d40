import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from registry.signing.bundle import ReleaseClaims
from registry.signing.errors import (
    GrantError,
    GrantExpired,
    GrantForOtherCommand,
    GrantForOtherNode,
    GrantNotYetValid,
    KeyNotValid,
    NameMismatch,
    SigningError,
    UnknownKey,
)
from registry.signing.grants import (
    CLOCK_SKEW,
    MAX_LIFETIME,
    Grant,
    check_grant,
    command_digest,
    issue_grant,
    match_command,
    match_release,
)
from registry.signing.keys import render_trusted_key
from registry.signing.local_key import LocalKeySigner
from registry.signing.verify import TrustedKeys

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)
GRANT = Grant(
    node="node-1",
    version_id="7b2f7a2e-0d2c-4c57-9d0b-6a2b7f1f9f55",
    engine_name="lk-support-tone-2026-07-04-1-0123456789abcdef0123",
    tenant="acme",
    adapter="support-tone",
    version="2026-07-04.1",
    base_revision="b" * 64,
    root_digest="a" * 64,
    generation=7,
    expires_at=NOW + timedelta(minutes=5),
    command="c" * 64,
)


def _check(token: str, keys: TrustedKeys, *, now: datetime = NOW, node: str = "node-1") -> Grant:
    return check_grant(token, keys, node=node, now=now)


def test_a_grant_is_read_back_by_its_node(signer: LocalKeySigner, keys: TrustedKeys) -> None:
    assert _check(issue_grant(signer, GRANT, now=NOW), keys) == GRANT


def test_the_present_is_the_default_time(signer: LocalKeySigner, keys: TrustedKeys) -> None:
    grant = replace(GRANT, expires_at=(datetime.now(UTC) + timedelta(minutes=1)).replace(microsecond=0))
    assert check_grant(issue_grant(signer, grant), keys, node="node-1") == grant


def test_a_grant_for_another_node_is_refused(signer: LocalKeySigner, keys: TrustedKeys) -> None:
    with pytest.raises(GrantForOtherNode):
        _check(issue_grant(signer, GRANT, now=NOW), keys, node="node-2")


def test_a_grant_ends_to_the_second(signer: LocalKeySigner, keys: TrustedKeys) -> None:
    token = issue_grant(signer, GRANT, now=NOW)
    _check(token, keys, now=GRANT.expires_at - timedelta(seconds=1))
    with pytest.raises(GrantExpired):
        _check(token, keys, now=GRANT.expires_at)


def test_a_grant_from_the_future_is_refused_but_for_a_small_skew_of_clocks(
    signer: LocalKeySigner, keys: TrustedKeys
) -> None:
    token = issue_grant(signer, GRANT, now=NOW)
    _check(token, keys, now=NOW - CLOCK_SKEW)
    with pytest.raises(GrantNotYetValid):
        _check(token, keys, now=NOW - CLOCK_SKEW - timedelta(seconds=1))


@pytest.mark.parametrize("lifetime", [timedelta(0), timedelta(seconds=-1), MAX_LIFETIME + timedelta(seconds=1)])
def test_a_grant_without_a_short_life_is_never_issued(signer: LocalKeySigner, lifetime: timedelta) -> None:
    with pytest.raises(GrantError):
        issue_grant(signer, replace(GRANT, expires_at=NOW + lifetime), now=NOW)


def test_a_grant_by_an_unknown_or_retired_key_is_refused(
    keys: TrustedKeys, signer: LocalKeySigner, other_signer: LocalKeySigner
) -> None:
    with pytest.raises(UnknownKey):
        _check(issue_grant(other_signer, GRANT, now=NOW), keys)
    retired = TrustedKeys.from_pem(f"Valid-To: {NOW.isoformat()}\n{signer.public_pem()}")
    with pytest.raises(KeyNotValid):
        _check(issue_grant(signer, GRANT, now=NOW), retired)


def test_grants_hold_across_a_rotation_and_a_replaced_key_issues_no_more(
    signer: LocalKeySigner, other_signer: LocalKeySigner
) -> None:
    old = render_trusted_key(signer.public_pem(), valid_to=NOW + timedelta(seconds=1))
    keys = TrustedKeys.from_pem(old + render_trusted_key(other_signer.public_pem(), valid_from=NOW))
    later = NOW + timedelta(minutes=4)
    assert _check(issue_grant(signer, GRANT, now=NOW), keys, now=later) == GRANT
    assert _check(issue_grant(other_signer, GRANT, now=NOW), keys, now=later) == GRANT
    with pytest.raises(KeyNotValid):
        _check(issue_grant(signer, GRANT, now=later), keys, now=later)


def test_two_grants_for_the_same_thing_are_told_apart(signer: LocalKeySigner) -> None:
    assert issue_grant(signer, GRANT, now=NOW) != issue_grant(signer, GRANT, now=NOW)


@given(data=st.data())
def test_any_flipped_bit_in_a_grant_is_refused(signer: LocalKeySigner, keys: TrustedKeys, data: st.DataObject) -> None:
    raw = bytearray(issue_grant(signer, GRANT, now=NOW).encode())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(SigningError):
        _check(raw.decode("latin-1"), keys)


def test_every_single_character_of_a_grant_counts(signer: LocalKeySigner, keys: TrustedKeys) -> None:
    token = issue_grant(signer, GRANT, now=NOW)
    for place, char in enumerate(token):
        for other in {"A", "B", ".", "=", chr(ord(char) ^ 1)} - {char}:
            with pytest.raises(SigningError):
                _check(token[:place] + other + token[place + 1 :], keys)
    for text in (token + "=", token + "A", " " + token, token + "\n", token + ".", token[:-1], "." + token):
        with pytest.raises(SigningError):
            _check(text, keys)


@given(st.text(alphabet=st.characters(codec="utf-8")) | st.from_regex(r"[\w-]*\.[\w-]*\.[\w-]*", fullmatch=True))
def test_noise_is_no_grant(keys: TrustedKeys, text: str) -> None:
    with pytest.raises(SigningError):
        _check(text, keys)


@pytest.fixture
def forge(signer: LocalKeySigner) -> Callable[..., str]:
    """Signs any header and claims with the trusted key, which is more than any attacker can."""

    def forge(*, header: dict[str, Any] | None = None, drop: str = "", **claims: object) -> str:
        head, body, _ = issue_grant(signer, GRANT, now=NOW).split(".")
        payload = {name: value for name, value in (_decode(body) | claims).items() if name != drop}
        headers = _decode(head) if header is None else header
        algorithm = headers.get("alg", "ES256")
        key = signer._private_key if algorithm == "ES256" else signer.public_pem()[:32]
        return jwt.encode(payload, key if algorithm != "none" else None, algorithm=algorithm, headers=headers)  # type: ignore[arg-type]  # key kinds vary with the attack

    return forge


def _decode(segment: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(base64.urlsafe_b64decode(segment + "=="))
    return document


def test_what_the_forger_leaves_alone_is_accepted(forge: Callable[..., str], keys: TrustedKeys) -> None:
    assert _check(forge(), keys) == GRANT


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_another_algorithm_is_refused(
    forge: Callable[..., str], keys: TrustedKeys, signer: LocalKeySigner, algorithm: str
) -> None:
    token = forge(header={"alg": algorithm, "kid": signer.key_id, "typ": "lorekeeper-grant+jwt"})
    with pytest.raises(GrantError, match="header"):
        _check(token, keys)


@pytest.mark.parametrize("header", [{"typ": "JWT"}, {"crit": ["x"], "x": 1}, {"jwk": {}}, {"kid": 1}, {"kid": None}])
def test_another_header_is_refused(
    forge: Callable[..., str], keys: TrustedKeys, signer: LocalKeySigner, header: dict[str, Any]
) -> None:
    usual = {"alg": "ES256", "kid": signer.key_id, "typ": "lorekeeper-grant+jwt"}
    try:
        token = forge(header=usual | header)
    except jwt.PyJWTError:
        return
    with pytest.raises(GrantError):
        _check(token, keys)


REQUIRED = ["iss", "aud", "iat", "nbf", "exp", "jti", "generation", "version_id", "engine_name", "tenant", "adapter"]


@pytest.mark.parametrize("claim", [*REQUIRED, "version", "base_revision", "root_digest", "command", "action"])
def test_a_grant_without_a_claim_is_refused(forge: Callable[..., str], keys: TrustedKeys, claim: str) -> None:
    with pytest.raises(GrantError):
        _check(forge(drop=claim), keys)


WRONG = [
    {"iss": "somebody"},
    {"aud": ["node-1", "node-2"]},
    {"generation": "7"},
    {"generation": True},
    {"tenant": 1},
    {"exp": "soon"},
    {"exp": int(NOW.timestamp()) + 86400},
    {"iat": int(NOW.timestamp()) + 86400},
    {"nbf": int(NOW.timestamp()) + 86400},
    {"exp": 10**30, "iat": 10**30, "nbf": 0},
]


@pytest.mark.parametrize("claims", WRONG, ids=str)
def test_a_grant_with_a_wrong_claim_is_refused_though_signed(
    forge: Callable[..., str], keys: TrustedKeys, claims: dict[str, Any]
) -> None:
    with pytest.raises(GrantError):
        _check(forge(**claims), keys)


def test_a_key_of_the_tokens_own_choosing_is_not_used(keys: TrustedKeys, signer: LocalKeySigner) -> None:
    attacker = LocalKeySigner(ec.generate_private_key(ec.SECP256R1()))
    head, body, _ = issue_grant(signer, GRANT, now=NOW).split(".")
    forged = jwt.encode(_decode(body), attacker._private_key, algorithm="ES256", headers=_decode(head))
    with pytest.raises(GrantError):
        _check(forged, keys)


def test_a_command_is_told_by_the_canonical_form_of_all_but_its_grant() -> None:
    command = {"generation": 7, "drain_s": 0.1 + 0.2, "to": "disk", "grant": "a"}
    digest = hashlib.sha256(b'{"drain_s":0.30000000000000004,"generation":7,"to":"disk"}').hexdigest()
    assert command_digest(command) == digest
    match_command(replace(GRANT, command=digest), digest)
    with pytest.raises(GrantForOtherCommand):
        match_command(GRANT, digest)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.floats(allow_nan=False, allow_infinity=False)))
def test_a_command_is_told_alike_on_both_sides_of_a_queue(command: dict[str, float]) -> None:
    assert command_digest(json.loads(json.dumps(command))) == command_digest(command)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, "\ud800", {1: 2}, object()], ids=range(6))
def test_no_grant_can_be_for_what_has_no_canonical_form(value: object) -> None:
    with pytest.raises(GrantError, match="no grant can be for"):
        command_digest({"value": value})


def _release(make_claims: Callable[..., ReleaseClaims], **changes: object) -> ReleaseClaims:
    same = {name: getattr(GRANT, name) for name in ("tenant", "adapter", "version", "base_revision", "engine_name")}
    return make_claims(**{**same, "root_digest": GRANT.root_digest, **changes})


def test_the_granted_release_matches(make_claims: Callable[..., ReleaseClaims]) -> None:
    match_release(GRANT, _release(make_claims))


@pytest.mark.parametrize("field", ["tenant", "adapter", "version", "base_revision", "root_digest", "engine_name"])
def test_any_other_release_is_refused_by_the_first_difference(
    make_claims: Callable[..., ReleaseClaims], field: str
) -> None:
    with pytest.raises(NameMismatch) as caught:
        match_release(GRANT, _release(make_claims, **{field: "x"}))
    assert caught.value.field == field
