import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.signing.bundle import ReleaseClaims, sign_files, sign_release
from registry.signing.dsse import MAX_BUNDLE_CHARACTERS, pae
from registry.signing.errors import (
    BadSignature,
    DigestMismatch,
    ExtraFile,
    MissingFile,
    SigningError,
    UnknownKey,
)
from registry.signing.keys import TrustedKey, TrustedKeys
from registry.signing.local_key import LocalKeySigner
from registry.signing.manifest import SignedFile, root_digest
from registry.signing.pipeline_bundle import key_id_in, verify_pipeline_bundle

Files = tuple[SignedFile, ...]


@pytest.fixture(scope="session")
def key(signer: LocalKeySigner, keys: TrustedKeys) -> TrustedKey:
    return keys.find(signer.key_id)


@pytest.fixture(scope="session")
def whole(signer: LocalKeySigner, files: Files) -> str:
    """One bundle for all examples: signatures differ in length."""
    return sealed(signer, statement_of(files))


def statement_of(files: Files) -> dict[str, Any]:
    """The statement that the public tool makes: no sizes, no time."""
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "my-model", "digest": {"sha256": root_digest(files)}}],
        "predicateType": "https://model_signing/signature/v1.0",
        "predicate": {
            "serialization": {"method": "files", "hash_type": "sha256", "ignore_paths": [".git"]},
            "resources": [{"name": file.path, "algorithm": "sha256", "digest": file.sha256} for file in files],
        },
    }


def sealed(signer: LocalKeySigner, statement: object, **changes: object) -> str:
    """A bundle in another layout than ours."""
    payload = json.dumps(statement, indent=2).encode()
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": "application/vnd.in-toto+json",
        "signatures": [{"sig": base64.b64encode(signer.sign(pae(payload))).decode(), "keyid": ""}],
    }
    return json.dumps(
        {"verificationMaterial": {"publicKey": {"hint": signer.key_id}}, "dsseEnvelope": envelope | changes}
    )


def test_a_bundle_over_exactly_the_files_is_accepted(signer: LocalKeySigner, key: TrustedKey, files: Files) -> None:
    bundle = sealed(signer, statement_of(files))
    verify_pipeline_bundle(bundle, key, reversed(files))
    assert key_id_in(bundle) == signer.key_id


def test_a_bundle_that_lorekeeper_wrote_is_accepted_too(signer: LocalKeySigner, key: TrustedKey, files: Files) -> None:
    verify_pipeline_bundle(sign_files(signer, files), key, files)


def test_a_bundle_over_other_files_is_refused_by_name(signer: LocalKeySigner, key: TrustedKey, files: Files) -> None:
    bundle = sealed(signer, statement_of(files))
    other = SignedFile(files[1].path, files[1].size, "f" * 64)
    for error, found in [
        (MissingFile, files[:-1]),
        (ExtraFile, (*files, SignedFile("notes.md", 1, "f" * 64))),
        (DigestMismatch, (files[0], other, files[2])),
    ]:
        with pytest.raises(error):
            verify_pipeline_bundle(bundle, key, found)


def test_a_bundle_by_another_key_is_refused_whatever_key_it_names(
    signer: LocalKeySigner, other_signer: LocalKeySigner, key: TrustedKey, files: Files
) -> None:
    bundle = sealed(other_signer, statement_of(files))
    with pytest.raises(UnknownKey):
        verify_pipeline_bundle(bundle, key, files)
    with pytest.raises(BadSignature):
        verify_pipeline_bundle(bundle.replace(other_signer.key_id, signer.key_id), key, files)


def _changed(files: Files, change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    statement = statement_of(files)
    change(statement)
    return statement


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "another purpose": lambda s: s.update(predicateType="https://slsa.dev/provenance/v1"),
    "another type": lambda s: s.update(_type="https://in-toto.io/Statement/v0.1"),
    "no predicate": lambda s: s.pop("predicate"),
    "no resources": lambda s: s["predicate"].pop("resources"),
    "two subjects": lambda s: s["subject"].append(s["subject"][0]),
    "another root": lambda s: s["subject"][0]["digest"].update(sha256="0" * 64),
    "shards": lambda s: s["predicate"]["serialization"].update(method="shards"),
    "another hash": lambda s: s["predicate"]["serialization"].update(hash_type="blake2b"),
    "another algorithm": lambda s: s["predicate"]["resources"][0].update(algorithm="blake2b"),
    "no digest": lambda s: s["predicate"]["resources"][0].update(digest="zz"),
    "a list": lambda s: s.update(predicate=[]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_signed_statement_of_another_kind_is_refused(
    signer: LocalKeySigner, key: TrustedKey, files: Files, change: Callable[[dict[str, Any]], object]
) -> None:
    with pytest.raises(BadSignature):
        verify_pipeline_bundle(sealed(signer, _changed(files, change)), key, files)


def test_a_file_that_is_listed_twice_is_refused(signer: LocalKeySigner, key: TrustedKey, files: Files) -> None:
    statement = statement_of((*files, files[-1]))
    with pytest.raises(BadSignature, match="contradicts"):
        verify_pipeline_bundle(sealed(signer, statement), key, files)


def test_an_attestation_is_no_signature_of_files(
    signer: LocalKeySigner, key: TrustedKey, files: Files, make_claims: Callable[..., ReleaseClaims]
) -> None:
    with pytest.raises(BadSignature):
        verify_pipeline_bundle(sign_release(signer, make_claims(), files), key, files)


@pytest.mark.parametrize(
    "changes",
    [
        {"signatures": []},
        {"signatures": [{"sig": "AAAA"}, {"sig": "AAAA"}]},
        {"payloadType": "text/plain"},
        {"payload": "not base64!"},
        {"payload": base64.b64encode(b'{"_type": 1, "_type": 2}').decode()},
    ],
)
def test_an_envelope_of_another_form_is_refused(
    signer: LocalKeySigner, key: TrustedKey, files: Files, changes: dict[str, Any]
) -> None:
    with pytest.raises(BadSignature):
        verify_pipeline_bundle(sealed(signer, statement_of(files), **changes), key, files)


HOSTILE = [
    "",
    "null",
    "[]",
    "{}",
    "[" * 100_000,
    '{"a":' * 50_000,
    "\ud800",
    "x" * (MAX_BUNDLE_CHARACTERS + 1),
    "9" * 5000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_refused_and_not_a_crash(key: TrustedKey, files: Files, text: str) -> None:
    with pytest.raises(BadSignature):
        verify_pipeline_bundle(text, key, files)


@given(st.data())
def test_a_flipped_bit_is_refused_or_changes_nothing_that_is_signed(
    whole: str, key: TrustedKey, files: Files, data: st.DataObject
) -> None:
    bundle = bytearray(whole.encode())
    bundle[data.draw(st.integers(0, len(bundle) - 1))] ^= 1 << data.draw(st.integers(0, 6))
    try:
        verify_pipeline_bundle(bundle.decode(), key, files)
    except (SigningError, UnicodeDecodeError):
        return
    signed, found = (json.loads(text)["dsseEnvelope"]["payload"] for text in (whole, bundle))
    assert base64.b64decode(signed) == base64.b64decode(found)
