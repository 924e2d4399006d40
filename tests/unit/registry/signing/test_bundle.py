import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import LorekeeperError
from registry.naming import NamingError
from registry.signing.bundle import FILES_PREDICATE, ReleaseClaims, sign_files, sign_release
from registry.signing.dsse import MAX_BUNDLE_CHARACTERS, seal_statement
from registry.signing.errors import (
    BadSignature,
    DigestMismatch,
    ExtraFile,
    KeyNotValid,
    MissingFile,
    NameMismatch,
    SigningError,
    UnknownKey,
)
from registry.signing.local_key import LocalKeySigner
from registry.signing.manifest import SignedFile, root_digest
from registry.signing.verify import TrustedKeys, verify_bundle, verify_files, verify_release

Files = tuple[SignedFile, ...]
MakeClaims = Callable[..., ReleaseClaims]


def _payload(bundle: str) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(base64.b64decode(json.loads(bundle)["dsseEnvelope"]["payload"]))
    return payload


def test_a_bundle_gives_back_the_files_it_signs(signer: LocalKeySigner, keys: TrustedKeys, files: Files) -> None:
    bundle = sign_files(signer, reversed(files))
    assert verify_bundle(bundle, keys) == files
    verify_files(bundle, keys, reversed(files))


def test_a_bundle_has_the_form_of_the_standard(signer: LocalKeySigner, files: Files) -> None:
    bundle = sign_files(signer, files)
    outer = json.loads(bundle)
    assert outer["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
    assert outer["verificationMaterial"] == {"publicKey": {"hint": signer.key_id}, "tlogEntries": []}
    statement = _payload(bundle)
    assert statement["predicateType"] == "https://model_signing/signature/v1.0"
    assert statement["subject"] == [{"name": "adapter", "digest": {"sha256": root_digest(files)}}]
    assert statement["predicate"]["resources"][1] == {
        "name": "adapter_config.json",
        "algorithm": "sha256",
        "digest": "1" * 64,
    }


def test_a_release_gives_back_its_claims(
    signer: LocalKeySigner, keys: TrustedKeys, files: Files, make_claims: MakeClaims
) -> None:
    claims = make_claims()
    attestation = sign_release(signer, claims, files)
    assert verify_release(attestation, keys) == claims
    assert _payload(attestation)["subject"][0]["name"] == "acme/support-tone@2026-07-04.1"
    assert _payload(attestation)["predicateType"] == "https://lorekeeper.dev/attestations/release/v1"


def test_a_release_is_never_signed_for_other_files(
    signer: LocalKeySigner, files: Files, make_claims: MakeClaims
) -> None:
    with pytest.raises(NameMismatch) as caught:
        sign_release(signer, make_claims(), files[1:])
    assert caught.value.field == "root_digest"


@pytest.mark.parametrize("change", [{"path": "../x.json"}, {"path": "release.intoto.json"}, {"sha256": "F" * 64}])
def test_a_dangerous_file_is_never_signed(
    signer: LocalKeySigner, files: Files, make_claims: MakeClaims, change: dict[str, str]
) -> None:
    bad = (replace(files[1], **change), files[2])  # type: ignore[arg-type]  # only text fields are changed
    with pytest.raises(NamingError):
        sign_files(signer, bad)
    with pytest.raises(NamingError):
        sign_release(signer, make_claims(), bad)


@pytest.mark.parametrize(("error", "change"), [(DigestMismatch, {"sha256": "3" * 64}), (DigestMismatch, {"size": 13})])
def test_another_file_than_the_signed_one_is_refused(
    signer: LocalKeySigner, keys: TrustedKeys, files: Files, error: type[SigningError], change: dict[str, Any]
) -> None:
    with pytest.raises(error, match=r"adapter_config\.json"):
        verify_files(sign_files(signer, files), keys, (files[0], replace(files[1], **change), files[2]))


def test_a_missing_or_extra_file_is_refused_by_name(signer: LocalKeySigner, keys: TrustedKeys, files: Files) -> None:
    with pytest.raises(MissingFile) as missing:
        verify_files(sign_files(signer, files), keys, files[:2])
    assert missing.value.path == "adapter_model.safetensors"
    with pytest.raises(ExtraFile) as extra:
        verify_files(sign_files(signer, files[1:]), keys, files)
    assert extra.value.path == "README.md"


@given(data=st.data())
def test_any_flipped_bit_in_a_bundle_is_refused(
    signer: LocalKeySigner, keys: TrustedKeys, files: Files, data: st.DataObject
) -> None:
    with pytest.raises(SigningError):
        verify_bundle(_flip(sign_files(signer, files), data), keys)


@given(data=st.data())
def test_any_flipped_bit_in_an_attestation_is_refused(
    signer: LocalKeySigner, keys: TrustedKeys, files: Files, make_claims: MakeClaims, data: st.DataObject
) -> None:
    with pytest.raises(SigningError):
        verify_release(_flip(sign_release(signer, make_claims(), files), data), keys)


def test_every_single_character_of_a_bundle_counts(signer: LocalKeySigner, keys: TrustedKeys, files: Files) -> None:
    bundle = sign_files(signer, files)
    for place, char in enumerate(bundle):
        for other in {"A", " ", chr(ord(char) ^ 1)} - {char}:
            with pytest.raises(SigningError):
                verify_bundle(bundle[:place] + other + bundle[place + 1 :], keys)


@given(
    text=st.text()
    | st.recursive(st.none() | st.text(), lambda inner: st.dictionaries(st.text(), inner)).map(json.dumps)
)
def test_noise_is_no_bundle(keys: TrustedKeys, text: str) -> None:
    with pytest.raises(BadSignature):
        verify_bundle(text, keys)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, " " * (MAX_BUNDLE_CHARACTERS + 1), "{}", "[]", "null", '{"a":' * 50_000]
)
def test_a_hostile_text_is_refused_and_not_a_crash(keys: TrustedKeys, text: str) -> None:
    with pytest.raises(BadSignature):
        verify_bundle(text, keys)


def test_a_signature_by_an_unknown_key_is_refused(
    keys: TrustedKeys, other_signer: LocalKeySigner, files: Files
) -> None:
    with pytest.raises(UnknownKey):
        verify_bundle(sign_files(other_signer, files), keys)


def test_a_signature_that_claims_another_key_is_refused(
    signer: LocalKeySigner, keys: TrustedKeys, other_signer: LocalKeySigner, files: Files
) -> None:
    forged = sign_files(other_signer, files).replace(other_signer.key_id, signer.key_id)
    with pytest.raises(BadSignature):
        verify_bundle(forged, keys)


def test_a_bundle_is_no_attestation_and_the_other_way_round(
    signer: LocalKeySigner, keys: TrustedKeys, files: Files, make_claims: MakeClaims
) -> None:
    with pytest.raises(BadSignature, match="another purpose"):
        verify_release(sign_files(signer, files), keys)
    with pytest.raises(BadSignature, match="another purpose"):
        verify_bundle(sign_release(signer, make_claims(), files), keys)


def test_old_and_new_keys_verify_during_a_rotation(
    signer: LocalKeySigner, other_signer: LocalKeySigner, files: Files
) -> None:
    end = datetime.now(UTC) + timedelta(days=30)
    keys = TrustedKeys.from_pem(f"Valid-To: {end.isoformat()}\n{signer.public_pem()}\n{other_signer.public_pem()}")
    old, new = sign_files(signer, files), sign_files(other_signer, files)
    assert verify_bundle(old, keys) == verify_bundle(new, keys) == files
    later = end + timedelta(seconds=1)
    assert verify_bundle(new, keys, now=later) == files
    with pytest.raises(KeyNotValid):
        verify_bundle(old, keys, now=later)


@pytest.mark.parametrize(
    "predicate",
    [
        {},
        {"resources": [], "sizes": []},
        {"resources": [{"name": "a.json", "digest": "1" * 64}], "sizes": {}},
        {"resources": [{"name": "a.json", "digest": "1" * 64}], "sizes": {"a.json": True}},
        {"resources": [{"name": "a.json", "digest": "not hex"}], "sizes": {"a.json": 1}},
        {"resources": [{"name": "a.json", "digest": "1" * 64}], "sizes": {"a.json": 1}},
        {"resources": "a.json", "sizes": {"a.json": 1}},
    ],
)
def test_a_signed_statement_that_makes_no_sense_is_refused(
    signer: LocalKeySigner, keys: TrustedKeys, predicate: dict[str, Any]
) -> None:
    sealed = seal_statement(
        signer, predicate_type=FILES_PREDICATE, subject="adapter", digest="0" * 64, predicate=predicate
    )
    with pytest.raises(BadSignature):
        verify_bundle(sealed, keys)


def test_every_refusal_has_a_stable_code(keys: TrustedKeys) -> None:
    with pytest.raises(LorekeeperError) as caught:
        verify_bundle("", keys)
    assert (caught.value.code, caught.value.retryable) == ("bad_signature", False)


def _flip(text: str, data: st.DataObject) -> str:
    """The text with one bit of one byte changed. Signatures vary in length, so the place is drawn as a share of it."""
    raw = bytearray(text.encode())
    raw[data.draw(st.integers(0, 9_999)) * len(raw) // 10_000] ^= 1 << data.draw(st.integers(0, 7))
    return raw.decode("latin-1")
