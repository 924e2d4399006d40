from typing import Protocol


class Signer(Protocol):
    """Holds an ECDSA P-256 private key, or asks a key service to sign with one."""

    @property
    def key_id(self) -> str:
        """SHA-256 in hex of the public key's PEM text, as model-signing bundles name keys."""
        ...

    def public_pem(self) -> str:
        """The public key as PEM (SubjectPublicKeyInfo)."""
        ...

    def sign(self, payload: bytes) -> bytes:
        """The DER-encoded ECDSA signature over the SHA-256 of `payload`."""
        ...
