"""A signer whose private key never leaves AWS KMS: it is sent digests and gives back signatures."""

import hashlib
import logging
from collections.abc import Callable
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

from registry.errors import SignerUnavailable
from registry.signing.errors import KeyFileError
from registry.signing.keys import key_id_of, pem_of

logger = logging.getLogger(__name__)

SCHEME: Final = "awskms"
_ALGORITHM: Final = "ECDSA_SHA_256"
_ARN_REGION: Final = 3
# An approval waits for two signatures, a command for one.
_TIMES = Config(connect_timeout=3, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})


class KmsClient(Protocol):
    """The two calls that a signer needs; their permissions are `kms:GetPublicKey` and `kms:Sign`."""

    def get_public_key(self, *, KeyId: str) -> dict[str, Any]:  # noqa: N803  AWS names
        """The public key (DER) and what it is for."""
        ...

    def sign(self, *, KeyId: str, Message: bytes, MessageType: str, SigningAlgorithm: str) -> dict[str, Any]:  # noqa: N803
        """The signature."""
        ...


class AwsKmsSigner:
    """Signs with one key, named for good when the signer is made: an alias that is moved later changes nothing."""

    def __init__(self, client: KmsClient, key: str) -> None:
        """Ask for the public key of `key`: an id, an ARN, or `alias/NAME`.

        Raises:
            KeyFileError: it is not an ECC_NIST_P256 key for signing.
            SignerUnavailable: KMS does not answer, or refuses.

        """
        self._client = client
        answer = _asked("get its public key", lambda: client.get_public_key(KeyId=key))
        if answer.get("KeySpec") != "ECC_NIST_P256" or answer.get("KeyUsage") != "SIGN_VERIFY":
            raise KeyFileError(f"the KMS key {key} is not an ECC_NIST_P256 key for SIGN_VERIFY")
        self._arn = str(answer["KeyId"])
        self._public_key = _public_key(answer["PublicKey"], key)

    @property
    def key_id(self) -> str:
        return key_id_of(self._public_key)

    def public_pem(self) -> str:
        return pem_of(self._public_key)

    def sign(self, payload: bytes) -> bytes:
        """The DER-encoded signature over the SHA-256 of `payload`; only that digest is sent.

        Raises:
            SignerUnavailable: KMS does not answer, refuses, or answers with something that is not this key's signature.

        """
        digest = hashlib.sha256(payload).digest()
        answer = _asked(
            "sign",
            lambda: self._client.sign(
                KeyId=self._arn, Message=digest, MessageType="DIGEST", SigningAlgorithm=_ALGORITHM
            ),
        )
        signature = bytes(answer["Signature"])
        try:
            self._public_key.verify(signature, digest, ec.ECDSA(Prehashed(hashes.SHA256())))
        except InvalidSignature as error:
            logger.exception("KMS answered with a signature that is not by %s", self._arn)
            raise SignerUnavailable("The key service gave back a signature that does not hold.") from error
        return signature


def kms_client(address: str) -> tuple[KmsClient, str]:
    """A client for `awskms://[ENDPOINT]/KEY`, and the key; region and credentials come from where AWS's SDK looks.

    KEY is an id, `alias/NAME`, or an ARN, which names the region, too.

    Raises:
        KeyFileError: not such an address.

    """
    parts = urlsplit(address)
    key = parts.path.removeprefix("/")
    if parts.scheme != SCHEME or not key:
        raise KeyFileError(f"{address!a} is not the address of a KMS key: awskms:///KEY")
    fields = key.split(":")
    region = fields[_ARN_REGION] if fields[0] == "arn" and len(fields) > _ARN_REGION else None
    endpoint = f"https://{parts.netloc}" if parts.netloc else None
    try:
        client: Any = boto3.client("kms", region_name=region, endpoint_url=endpoint, config=_TIMES)
    except (BotoCoreError, ValueError) as error:
        raise KeyFileError(f"a client for KMS can't be made: {error}") from error
    return client, key


def _asked(what: str, call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return call()
    except (BotoCoreError, ClientError) as error:
        # The reason names accounts and roles: it is for the log.
        logger.exception("KMS did not %s", what)
        raise SignerUnavailable(
            "The key service does not answer as it should. An operator has to look at it."
        ) from error


def _public_key(der: bytes, key: str) -> ec.EllipticCurvePublicKey:
    try:
        found = serialization.load_der_public_key(der)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise KeyFileError(f"KMS gave no readable public key of {key}") from error
    if not isinstance(found, ec.EllipticCurvePublicKey) or not isinstance(found.curve, ec.SECP256R1):
        raise KeyFileError(f"KMS gave a public key of {key} that is not on the curve P-256")
    return found
