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
from registry.signing.dsse import MAX_BUNDLE_CHARACTERS, _seal, reseal_statement, seal_statement, signer_of
from registry.signing.errors import (
    BadSignature,
    DigestMismatch,
    ExtraFile,
    KeyNotValid,
    KeyRevoked,
    MissingFile,
    NameMismatch,
    SigningError,
    UnknownKey,
)
from registry.signing.keys import render_trusted_key
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


def test_a_replaced_key_goes_on_counting_for_what_it_signed_in_its_time(
    signer: LocalKeySigner, other_signer: LocalKeySigner, files: Files, make_claims: MakeClaims
) -> None:
    change = datetime(2026, 7, 4, 12, tzinfo=UTC)
    before, after = change - timedelta(seconds=1), change + timedelta(seconds=1)
    old = render_trusted_key(signer.public_pem(), valid_to=change)
    keys = TrustedKeys.from_pem(old + render_trusted_key(other_signer.public_pem(), valid_from=change))
    in_time = [(signer, before), (other_signer, after), (other_signer, change)]
    for key, moment in in_time:
        assert verify_bundle(sign_files(key, files, now=moment), keys) == files
        assert verify_release(sign_release(key, make_claims(), files, now=moment), keys) == make_claims()
    for key, moment in [(signer, change), (signer, after), (other_signer, before)]:
        with pytest.raises(KeyNotValid):
            verify_bundle(sign_files(key, files, now=moment), keys)
        with pytest.raises(KeyNotValid):
            verify_release(sign_release(key, make_claims(), files, now=moment), keys)


def test_nothing_that_a_revoked_key_signed_counts(signer: LocalKeySigner, files: Files) -> None:
    revoked = datetime(2026, 7, 4, 12, tzinfo=UTC)
    keys = TrustedKeys.from_pem(render_trusted_key(signer.public_pem(), revoked=revoked))
    with pytest.raises(KeyRevoked):
        verify_bundle(sign_files(signer, files, now=revoked - timedelta(days=300)), keys)


def test_a_statement_that_does_not_say_when_it_was_signed_counts_as_signed_now(
    signer: LocalKeySigner, files: Files
) -> None:
    end = datetime(2026, 7, 4, 12, tzinfo=UTC)
    keys = TrustedKeys.from_pem(render_trusted_key(signer.public_pem(), valid_to=end))
    statement = _payload(sign_files(signer, files))
    del statement["predicate"]["signed_at"]
    bundle = _seal(signer, statement)
    assert verify_bundle(bundle, keys, now=end - timedelta(seconds=1)) == files
    with pytest.raises(KeyNotValid):
        verify_bundle(bundle, keys, now=end)


@pytest.mark.parametrize("moment", [1783166400, "soon", "2026-07-04T12:00:00", True])
def test_a_time_of_signing_that_cannot_be_read_never_means_any_time(
    signer: LocalKeySigner, keys: TrustedKeys, files: Files, moment: object
) -> None:
    statement = _payload(sign_files(signer, files))
    statement["predicate"]["signed_at"] = moment
    with pytest.raises(BadSignature, match="no readable time"):
        verify_bundle(_seal(signer, statement), keys)


def test_another_key_signs_the_same_statement_again(
    signer: LocalKeySigner, other_signer: LocalKeySigner, files: Files, make_claims: MakeClaims
) -> None:
    then, now = datetime(2026, 7, 4, 12, tzinfo=UTC), datetime(2026, 8, 4, 12, tzinfo=UTC)
    old = sign_release(signer, make_claims(), files, now=then)
    old_key = TrustedKeys.from_pem(signer.public_pem()).find(signer.key_id)
    new = reseal_statement(old, old_key, other_signer, now=now)
    assert verify_release(new, TrustedKeys.from_pem(other_signer.public_pem())) == make_claims()
    assert (signer_of(old), signer_of(new)) == ((signer.key_id, then), (other_signer.key_id, now))
    with pytest.raises(BadSignature):
        reseal_statement(old.replace("A", "B", 1), old_key, other_signer)
    with pytest.raises(BadSignature):
        reseal_statement(new, old_key, other_signer)


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
