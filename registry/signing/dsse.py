"""The outer form of every signature: a sigstore bundle v0.3 around a DSSE envelope around an in-toto statement.

There is exactly one text for one statement, key and signature, and only that text is read back. So nothing in a bundle
can be changed unseen, not even what the signature doesn't cover: a space, an ignored field, the spare bits of base64.
"""

import base64
import binascii
import json
from datetime import datetime
from typing import Any

import rfc8785

from registry.signing.errors import BadSignature
from registry.signing.keys import TrustedKeys
from registry.signing.ports import Signer

MAX_BUNDLE_CHARACTERS = 1 << 20
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
_BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
_PAYLOAD_TYPE = "application/vnd.in-toto+json"


def seal_statement(signer: Signer, *, predicate_type: str, subject: str, digest: str, predicate: dict[str, Any]) -> str:
    """Sign the in-toto statement that `predicate` holds for `subject`, whose SHA-256 is `digest`; return the bundle."""
    statement: dict[str, Any] = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": subject, "digest": {"sha256": digest}}],
        "predicateType": predicate_type,
        "predicate": predicate,
    }
    payload = rfc8785.dumps(statement)
    return _render(key_id=signer.key_id, payload=payload, signature=signer.sign(_pae(payload)))


def open_statement(
    text: str, keys: TrustedKeys, *, predicate_type: str, now: datetime | None = None
) -> tuple[str, dict[str, Any]]:
    """Check a bundle and return its subject's SHA-256 and its predicate.

    Raises:
        BadSignature: not a bundle of ours, of another predicate type, or changed since it was signed.
        UnknownKey: signed by a key that is not trusted, or not at `now` (default: the present).

    """
    key_id, payload, signature = _parse(text)
    keys.find(key_id, now=now).verify(signature, _pae(payload))
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
    return digest, predicate


def _pae(payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: what is signed says its own type and length."""
    return b"DSSEv1 %d %s %d %s" % (len(_PAYLOAD_TYPE), _PAYLOAD_TYPE.encode(), len(payload), payload)


def _render(*, key_id: str, payload: bytes, signature: bytes) -> str:
    bundle = {
        "mediaType": _BUNDLE_TYPE,
        "verificationMaterial": {"publicKey": {"hint": key_id}, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": _PAYLOAD_TYPE,
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
