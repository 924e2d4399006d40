"""Bundles that others made over a version's files, with the public model-signing tool or anything that follows it.

Unlike our own (`dsse`) they come in whatever form their tool gives JSON; what counts is what is signed.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from typing import Any, Final

from registry.signing.bundle import FILES_PREDICATE
from registry.signing.dsse import MAX_BUNDLE_CHARACTERS, PAYLOAD_TYPE, STATEMENT_TYPE, pae
from registry.signing.errors import BadSignature, DigestMismatch, ExtraFile, MissingFile, UnknownKey
from registry.signing.keys import TrustedKey
from registry.signing.manifest import SignedFile

_METHOD: Final = {"method": "files", "hash_type": "sha256"}


def key_id_in(text: str) -> str:
    """The key that a bundle says it is signed with.

    Raises:
        BadSignature: not a bundle with a key's hint: one that was made with a certificate or an identity, say.

    """
    return _envelope(text)[0]


def verify_pipeline_bundle(text: str, key: TrustedKey, files: Iterable[SignedFile]) -> None:
    """Check that `text` is a model-signing bundle by `key` over exactly `files`, names and bytes.

    Raises:
        UnknownKey: by another key. BadSignature: not such a bundle, or changed since it was signed.
        MissingFile, ExtraFile, DigestMismatch: the first file that differs.

    """
    key_id, payload, signature = _envelope(text)
    if key_id != key.key_id:
        raise UnknownKey(key_id)
    key.verify(signature, pae(payload))
    signed = _signed_digests(_object(payload))
    found = {file.path: file.sha256 for file in files}
    if missing := signed.keys() - found.keys():
        raise MissingFile(min(missing))
    if extra := found.keys() - signed.keys():
        raise ExtraFile(min(extra))
    for path in sorted(signed):
        if signed[path] != found[path]:
            raise DigestMismatch(path)


def _envelope(text: str) -> tuple[str, bytes, bytes]:
    if len(text) > MAX_BUNDLE_CHARACTERS:
        raise BadSignature(f"the bundle is longer than {MAX_BUNDLE_CHARACTERS} characters")
    bundle = _object(text.encode(errors="surrogatepass"))
    try:
        key_id = bundle["verificationMaterial"]["publicKey"]["hint"]
        envelope = bundle["dsseEnvelope"]
        (entry,) = envelope["signatures"]
        payload, signature = (base64.b64decode(value, validate=True) for value in (envelope["payload"], entry["sig"]))
        payload_type = envelope["payloadType"]
    except (KeyError, TypeError, ValueError) as error:
        raise BadSignature("not a sigstore bundle with a key's hint and one signature") from error
    if not isinstance(key_id, str) or payload_type != PAYLOAD_TYPE:
        raise BadSignature("not a sigstore bundle with a key's hint and an in-toto statement")
    return key_id, payload, signature


def _signed_digests(statement: dict[str, Any]) -> dict[str, str]:
    """The SHA-256 of each signed file by its path."""
    if statement.get("_type") != STATEMENT_TYPE or statement.get("predicateType") != FILES_PREDICATE:
        raise BadSignature("not signed as the files of a model (OpenSSF model signing v1.0)")
    try:
        ((subject,), predicate) = (statement["subject"], statement["predicate"])
        method = {name: predicate["serialization"][name] for name in _METHOD}
        listed = [(str(resource["name"]), str(resource["digest"])) for resource in predicate["resources"]]
        algorithms = {resource["algorithm"] for resource in predicate["resources"]}
        digest = hashlib.sha256(b"".join(bytes.fromhex(digest) for _name, digest in listed)).hexdigest()
        consistent = subject["digest"]["sha256"] == digest and len(dict(listed)) == len(listed)
    except (KeyError, TypeError, ValueError) as error:
        raise BadSignature("the signed statement lists no files and their digests") from error
    if method != _METHOD or algorithms != {"sha256"}:
        raise BadSignature("the files must be signed whole, by SHA-256 (the tool's default serialization)")
    if not consistent:
        raise BadSignature("the signed statement contradicts itself")
    return dict(listed)


def _object(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise BadSignature("the bundle or its payload is not JSON with keys that stand once") from error
    if not isinstance(document, dict):
        raise BadSignature("the bundle or its payload is not a JSON object")
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found
