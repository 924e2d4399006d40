"""The outer form of every signature: a sigstore bundle v0.3 around a DSSE envelope around an in-toto statement.

There is exactly one text for one statement, key and signature, and only that text is read back. So nothing in a bundle
can be changed unseen, not even what the signature doesn't cover: a space, an ignored field, the spare bits of base64.
"""

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Any

import rfc8785

from registry.signing.errors import BadSignature
from registry.signing.keys import KeyRing, TrustedKey, read_time
from registry.signing.ports import Signer

MAX_BUNDLE_CHARACTERS = 1 << 20
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
_BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD_TYPE = "application/vnd.in-toto+json"


def seal_statement(
    signer: Signer,
    *,
    predicate_type: str,
    subject: str,
    digest: str,
    predicate: dict[str, Any],
    now: datetime | None = None,
) -> str:
    """Sign the in-toto statement that `predicate` holds for `subject`, whose SHA-256 is `digest`; return the bundle.

    The predicate also says when: a key that was replaced since goes on counting for what it signed in its time.
    """
    statement: dict[str, Any] = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": subject, "digest": {"sha256": digest}}],
        "predicateType": predicate_type,
        "predicate": predicate | {"signed_at": _moment(now)},
    }
    return _seal(signer, statement)


def reseal_statement(text: str, key: TrustedKey, signer: Signer, *, now: datetime | None = None) -> str:
    """Let `signer` make the statement that `key` made in the bundle `text`, now.

    Raises:
        BadSignature: `text` is not a bundle of ours, or not by `key`.

    """
    _key_id, payload, signature = _parse(text)
    key.verify(signature, pae(payload))
    statement = _load(payload)
    statement["predicate"] = statement["predicate"] | {"signed_at": _moment(now)}
    return _seal(signer, statement)


def open_statement(
    text: str, keys: KeyRing, *, predicate_type: str, now: datetime | None = None
) -> tuple[str, dict[str, Any]]:
    """Check a bundle and return its subject's SHA-256 and its predicate.

    Raises:
        BadSignature: not a bundle of ours, of another predicate type, or changed since it was signed.
        UnknownKey: signed by a key that is not trusted for the time at which it was signed. What does not say when it
            was signed counts as signed `now` (default: the present).

    """
    key_id, payload, signature = _parse(text)
    key = keys.find(key_id)
    key.verify(signature, pae(payload))
    statement = _load(payload)
    found = statement.get("predicateType")
    if statement.get("_type") != STATEMENT_TYPE or found != predicate_type:
        raise BadSignature(f"signed for another purpose: {found!a}, not {predicate_type}")
    try:
        (subject,) = statement["subject"]
        digest, predicate = subject["digest"]["sha256"], statement["predicate"]
    except (KeyError, TypeError, ValueError) as error:
        raise BadSignature("the signed statement has no single subject with a SHA-256") from error
    if not isinstance(digest, str) or not isinstance(predicate, dict):
        raise BadSignature("the signed statement has fields of a wrong type")
    key.require_valid_at(_signed_at(predicate) or now or datetime.now(UTC))
    return digest, predicate


def signer_of(text: str) -> tuple[str, datetime | None]:
    """The key id and the time that a bundle names; true only of a bundle that `open_statement` has accepted.

    Raises:
        BadSignature: not a bundle of ours.

    """
    key_id, payload, _signature = _parse(text)
    predicate = _load(payload).get("predicate")
    return key_id, _signed_at(predicate if isinstance(predicate, dict) else {})


def _signed_at(predicate: dict[str, Any]) -> datetime | None:
    value = predicate.get("signed_at")
    if value is None:
        return None
    time = read_time(value) if isinstance(value, str) else None
    if time is None:
        raise BadSignature("the signed statement says no readable time at which it was signed")
    return time


def _moment(now: datetime | None) -> str:
    return (now or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds")


def _seal(signer: Signer, statement: dict[str, Any]) -> str:
    payload = rfc8785.dumps(statement)
    return _render(key_id=signer.key_id, payload=payload, signature=signer.sign(pae(payload)))


def pae(payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: what is signed says its own type and length."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def _render(*, key_id: str, payload: bytes, signature: bytes) -> str:
    bundle = {
        "mediaType": _BUNDLE_TYPE,
        "verificationMaterial": {"publicKey": {"hint": key_id}, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": base64.b64encode(signature).decode(), "keyid": ""}],
        },
    }
    return json.dumps(bundle, indent=2)


def _parse(text: str) -> tuple[str, bytes, bytes]:
    if len(text) > MAX_BUNDLE_CHARACTERS:
        raise BadSignature(f"the bundle is longer than {MAX_BUNDLE_CHARACTERS} characters")
    bundle = _load(text)
    try:
        key_id = bundle["verificationMaterial"]["publicKey"]["hint"]
        payload = base64.b64decode(bundle["dsseEnvelope"]["payload"], validate=True)
        signature = base64.b64decode(bundle["dsseEnvelope"]["signatures"][0]["sig"], validate=True)
    except (KeyError, IndexError, TypeError, ValueError, binascii.Error) as error:
        raise BadSignature("not a sigstore bundle with a key hint, a payload and a signature") from error
    if not isinstance(key_id, str) or _render(key_id=key_id, payload=payload, signature=signature) != text:
        raise BadSignature("the bundle is not in the form in which Lorekeeper writes it")
    return key_id, payload, signature


def _load(text: str | bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadSignature("the bundle or its payload is not JSON") from error
    if not isinstance(document, dict):
        raise BadSignature("the bundle or its payload is not a JSON object")
    return document
