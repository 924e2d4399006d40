import hashlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

from registry.errors import SignerUnavailable
from registry.signing.aws_kms import AwsKmsSigner, kms_client
from registry.signing.bundle import ReleaseClaims, sign_files, sign_release
from registry.signing.errors import KeyFileError
from registry.signing.grants import check_grant, issue_grant
from registry.signing.keys import TrustedKeys
from registry.signing.manifest import SignedFile
from registry.signing.verify import verify_bundle, verify_release
from tests.unit.registry.signing.test_grants import GRANT, NOW

ARN = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ALIAS = "alias/lorekeeper"
KEY = ec.generate_private_key(ec.SECP256R1())
Kms = tuple[Any, Stubber]


def der_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def public_key_answer(**changes: object) -> dict[str, Any]:
    return {
        "KeyId": ARN,
        "PublicKey": der_of(KEY),
        "KeySpec": "ECC_NIST_P256",
        "KeyUsage": "SIGN_VERIFY",
        "SigningAlgorithms": ["ECDSA_SHA_256"],
    } | changes


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's own: no configuration, no credentials, no region, no metadata service."""
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def kms() -> Iterator[Kms]:
    client: Any = boto3.client("kms", region_name="eu-central-1", aws_access_key_id="x", aws_secret_access_key="y")
    with Stubber(client) as stubber:
        yield client, stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def signer(kms: Kms) -> AwsKmsSigner:
    client, stubber = kms
    stubber.add_response("get_public_key", public_key_answer(), {"KeyId": ALIAS})
    return AwsKmsSigner(client, ALIAS)


def expect_signature(kms: Kms, payload: bytes, *, key: ec.EllipticCurvePrivateKey = KEY) -> None:
    """Stub one call of Sign over the digest of `payload`, answered with `key`."""
    digest = hashlib.sha256(payload).digest()
    asked = {"KeyId": ARN, "Message": digest, "MessageType": "DIGEST", "SigningAlgorithm": "ECDSA_SHA_256"}
    answer = {"KeyId": ARN, "Signature": sign_digest(key, digest), "SigningAlgorithm": "ECDSA_SHA_256"}
    kms[1].add_response("sign", answer, asked)


def sign_digest(key: ec.EllipticCurvePrivateKey, digest: bytes) -> bytes:
    assert len(digest) == 32
    return key.sign(digest, ec.ECDSA(Prehashed(hashes.SHA256())))


class Kms256:
    """KMS as far as a signer knows it, for texts whose digest a test can't foresee."""

    def get_public_key(self, **asked: Any) -> dict[str, Any]:
        return public_key_answer()

    def sign(self, **asked: Any) -> dict[str, Any]:
        return {"Signature": sign_digest(KEY, asked["Message"])}


def test_the_digest_is_signed_by_the_key_that_the_alias_meant_at_first(kms: Kms, signer: AwsKmsSigner) -> None:
    payload = b"x" * 10_000
    expect_signature(kms, payload)
    TrustedKeys.from_pem(signer.public_pem()).find(signer.key_id).verify(signer.sign(payload), payload)


def test_bundles_attestations_and_grants_by_kms_verify_like_any_others(
    files: tuple[SignedFile, ...], make_claims: Callable[..., ReleaseClaims]
) -> None:
    signer = AwsKmsSigner(Kms256(), ALIAS)
    keys = TrustedKeys.from_pem(signer.public_pem())
    assert verify_bundle(sign_files(signer, files), keys) == files
    assert verify_release(sign_release(signer, make_claims(), files), keys) == make_claims()
    assert check_grant(issue_grant(signer, GRANT, now=NOW), keys, node="node-1", now=NOW) == GRANT


@pytest.mark.parametrize(
    "changes",
    [
        {"KeySpec": "RSA_2048"},
        {"KeySpec": "ECC_SECG_P256K1"},
        {"KeyUsage": "KEY_AGREEMENT"},
        {"PublicKey": b"noise"},
        {"PublicKey": der_of(ec.generate_private_key(ec.SECP384R1()))},
    ],
)
def test_a_key_of_another_kind_is_refused(kms: Kms, changes: dict[str, Any]) -> None:
    client, stubber = kms
    stubber.add_response("get_public_key", public_key_answer(**changes), {"KeyId": ARN})
    with pytest.raises(KeyFileError):
        AwsKmsSigner(client, ARN)


def test_what_kms_refuses_is_an_operators_trouble_and_only_the_log_names_the_account(
    kms: Kms, signer: AwsKmsSigner, caplog: pytest.LogCaptureFixture
) -> None:
    _client, stubber = kms
    stubber.add_client_error("sign", "AccessDeniedException", f"User is not authorized on {ARN}", 400)
    with caplog.at_level(logging.ERROR), pytest.raises(SignerUnavailable) as caught:
        signer.sign(b"payload")
    assert "111122223333" not in str(caught.value)
    assert "111122223333" in caplog.text
    assert caught.value.retryable


def test_a_kms_that_is_away_is_an_operators_trouble_at_the_start_too(kms: Kms) -> None:
    class Away(Kms256):
        def get_public_key(self, **asked: Any) -> dict[str, Any]:
            raise EndpointConnectionError(endpoint_url="https://kms.eu-central-1.amazonaws.com")

    with pytest.raises(SignerUnavailable):
        AwsKmsSigner(Away(), ARN)


def test_a_signature_by_another_key_is_never_passed_on(kms: Kms, signer: AwsKmsSigner) -> None:
    expect_signature(kms, b"payload", key=ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(SignerUnavailable, match="does not hold"):
        signer.sign(b"payload")


@pytest.mark.parametrize(
    ("address", "key", "host"),
    [
        (f"awskms:///{ARN}", ARN, "kms.eu-central-1.amazonaws.com"),
        ("awskms:///alias/lorekeeper", "alias/lorekeeper", "kms.us-west-2.amazonaws.com"),
        ("awskms://vpce-1.kms.example/1234abcd", "1234abcd", "vpce-1.kms.example"),
    ],
)
def test_an_address_names_the_key_its_region_and_its_endpoint(
    monkeypatch: pytest.MonkeyPatch, address: str, key: str, host: str
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    client, found = kms_client(address)
    assert (found, client.meta.endpoint_url) == (key, f"https://{host}")  # type: ignore[attr-defined]  # boto3's client


@pytest.mark.parametrize("address", ["awskms://", "awskms:///", "gcpkms:///key"])
def test_another_address_is_refused(address: str) -> None:
    with pytest.raises(KeyFileError, match="awskms"):
        kms_client(address)


def test_without_a_region_the_setting_is_refused_and_not_guessed() -> None:
    with pytest.raises(KeyFileError, match="region"):
        kms_client("awskms:///alias/lorekeeper")
