import json
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from hypothesis import given
from hypothesis import strategies as st

from registry.signing.errors import BadSignature, KeyFileError, KeyNotValid, KeyRevoked, UnknownKey
from registry.signing.keys import render_trusted_key
from registry.signing.local_key import LocalKeySigner, generate_key_file
from registry.signing.verify import TrustedKeys

EARLY, MIDDLE, LATE = (datetime(year, 1, 1, tzinfo=UTC) for year in (2025, 2026, 2027))


def _pem(key: ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey) -> str:
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


def test_a_new_key_file_is_for_its_owner_alone_and_signs(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    made = generate_key_file(path)
    read = LocalKeySigner.from_pem_file(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read.key_id == made.key_id
    TrustedKeys.from_pem(made.public_pem()).find(made.key_id).verify(read.sign(b"payload"), b"payload")


def test_a_key_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    generate_key_file(path)
    before = path.read_bytes()
    with pytest.raises(KeyFileError, match="never overwritten"):
        generate_key_file(path)
    assert path.read_bytes() == before


def test_a_key_file_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="can't be read"):
        LocalKeySigner.from_pem_file(tmp_path / "absent.pem")
    with pytest.raises(KeyFileError, match="can't be written"):
        generate_key_file(tmp_path / "absent/key.pem")
    (tmp_path / "noise.pem").write_text("noise")
    with pytest.raises(KeyFileError, match="no unencrypted PEM"):
        LocalKeySigner.from_pem_file(tmp_path / "noise.pem")


@pytest.mark.parametrize(
    "key", [ec.generate_private_key(ec.SECP384R1()), ed25519.Ed25519PrivateKey.generate()], ids=["P-384", "Ed25519"]
)
def test_only_p256_keys_sign_and_are_trusted(
    tmp_path: Path, key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey
) -> None:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "key.pem").write_bytes(pem)
    with pytest.raises(KeyFileError):
        LocalKeySigner.from_pem_file(tmp_path / "key.pem")
    with pytest.raises(KeyFileError, match="P-256"):
        TrustedKeys.from_pem(_pem(key.public_key()))


def test_several_keys_are_trusted_side_by_side(signer: LocalKeySigner, other_signer: LocalKeySigner) -> None:
    keys = TrustedKeys.from_pem(f"# old\n{signer.public_pem()}\n# new\n{other_signer.public_pem()}")
    assert [keys.find(each.key_id).key_id for each in (signer, other_signer)] == [signer.key_id, other_signer.key_id]


def test_a_key_is_trusted_from_and_to_the_times_before_it(signer: LocalKeySigner, other_signer: LocalKeySigner) -> None:
    window = f"Valid-From: {EARLY.isoformat()}\nvalid-to: {MIDDLE.isoformat()}\n"
    keys = TrustedKeys.from_pem(f"{window}{signer.public_pem()}{other_signer.public_pem()}")
    keys.find(signer.key_id).require_valid_at(EARLY)
    for moment in (MIDDLE, LATE, EARLY.replace(year=2024)):
        with pytest.raises(KeyNotValid):
            keys.find(signer.key_id).require_valid_at(moment)
        keys.find(other_signer.key_id).require_valid_at(moment)


def test_a_revoked_key_is_not_found_but_said_to_be_revoked(signer: LocalKeySigner) -> None:
    keys = TrustedKeys.from_pem(f"Revoked: {MIDDLE.isoformat()}\n{signer.public_pem()}")
    with pytest.raises(KeyRevoked, match="revoked"):
        keys.find(signer.key_id)


def test_a_key_with_two_sets_of_times_is_refused_and_a_repeated_one_is_not(signer: LocalKeySigner) -> None:
    pem = signer.public_pem()
    assert TrustedKeys.from_pem(pem + pem).find(signer.key_id)
    with pytest.raises(KeyFileError, match="twice"):
        TrustedKeys.from_pem(f"Revoked: {MIDDLE.isoformat()}\n{pem}{pem}")


@given(st.tuples(*3 * [st.none() | st.datetimes(timezones=st.just(UTC))]))
def test_keys_are_read_as_they_are_written(signer: LocalKeySigner, times: tuple[datetime | None, ...]) -> None:
    begin, end, revoked = times
    text = render_trusted_key(signer.public_pem(), valid_from=begin, valid_to=end, revoked=revoked)
    written = [each and each.isoformat() for each in times]
    entry = dict(zip(("valid_from", "valid_to", "revoked_at"), written, strict=True))
    document = json.dumps({"keys": [{"public_key": signer.public_pem(), **entry}]})
    for keys in (TrustedKeys.from_text(text), TrustedKeys.from_text(document)):
        (key,) = keys._keys.values()
        assert (key.key_id, key.valid_from, key.valid_to, key.revoked_at) == (signer.key_id, begin, end, revoked)


@pytest.mark.parametrize("text", ['{"keys": []}', "{", '{"keys": 1}', "{}", '{"keys": [{"public_key": "x"}]}'])
def test_trusted_keys_in_json_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(KeyFileError):
        TrustedKeys.from_text(text)


@pytest.mark.parametrize(
    "line", ["Valid-To: soon", "Valid-To: 2026-01-01T00:00:00", "Valid-Til: 2026-01-01T00:00:00Z", "Revoke: now"]
)
def test_a_limit_that_cannot_be_read_never_means_no_limit(signer: LocalKeySigner, line: str) -> None:
    with pytest.raises(KeyFileError):
        TrustedKeys.from_pem(f"{line}\n{signer.public_pem()}")


@pytest.mark.parametrize("text", ["", "noise", "-----BEGIN PUBLIC KEY-----\n"])
def test_trusted_keys_without_a_key_are_refused(text: str) -> None:
    with pytest.raises(KeyFileError):
        TrustedKeys.from_pem(text)


def test_a_cut_off_or_private_key_among_trusted_ones_is_refused(tmp_path: Path, signer: LocalKeySigner) -> None:
    with pytest.raises(KeyFileError, match="cut off"):
        TrustedKeys.from_pem(f"{signer.public_pem()}{signer.public_pem()[:60]}")
    generate_key_file(tmp_path / "key.pem")
    with pytest.raises(KeyFileError, match="PRIVATE KEY"):
        TrustedKeys.from_pem((tmp_path / "key.pem").read_text())


def test_an_unknown_key_is_refused(keys: TrustedKeys, other_signer: LocalKeySigner) -> None:
    with pytest.raises(UnknownKey) as caught:
        keys.find(other_signer.key_id)
    assert caught.value.key_id == other_signer.key_id


def test_a_signature_over_another_payload_is_refused(keys: TrustedKeys, signer: LocalKeySigner) -> None:
    with pytest.raises(BadSignature):
        keys.find(signer.key_id).verify(signer.sign(b"one"), b"two")
