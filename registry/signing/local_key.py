"""A signer whose private key lies in a file of this machine."""

import os
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from registry.signing.errors import KeyFileError
from registry.signing.keys import key_id_of, pem_of


class LocalKeySigner:
    def __init__(self, private_key: ec.EllipticCurvePrivateKey) -> None:
        if not isinstance(private_key.curve, ec.SECP256R1):
            raise KeyFileError(f"the signing key must be on the curve P-256, not {private_key.curve.name}")
        self._private_key = private_key
        self._public_key = private_key.public_key()

    @classmethod
    def from_pem_file(cls, path: Path | str) -> "LocalKeySigner":
        """Read an unencrypted PEM private key.

        Raises:
            KeyFileError: the file can't be read or holds no P-256 private key.

        """
        try:
            key = serialization.load_pem_private_key(Path(path).read_bytes(), password=None)
        except OSError as error:
            raise KeyFileError(f"the signing key {path} can't be read: {error.strerror}") from error
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise KeyFileError(f"{path} holds no unencrypted PEM private key") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise KeyFileError(f"{path} holds a key of another kind than elliptic curve")
        return cls(key)

    @property
    def key_id(self) -> str:
        return key_id_of(self._public_key)

    def public_pem(self) -> str:
        return pem_of(self._public_key)

    def sign(self, payload: bytes) -> bytes:
        return self._private_key.sign(payload, ec.ECDSA(hashes.SHA256()))


def generate_key_file(path: Path | str) -> LocalKeySigner:
    """Make a new P-256 key and write it to `path`, readable by its owner alone.

    Raises:
        KeyFileError: the file exists already (a key is never overwritten) or can't be written.

    """
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError as error:
        raise KeyFileError(f"{path} exists already: a signing key is never overwritten") from error
    except OSError as error:
        raise KeyFileError(f"{path} can't be written: {error.strerror}") from error
    return LocalKeySigner(key)
