"""The public keys that a verifier trusts, and until when."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from registry.signing.errors import BadSignature, KeyFileError, KeyNotValid, UnknownKey

_PEM_BLOCK = re.compile(r"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", re.DOTALL)
_PEM_BEGIN = re.compile(r"^-----BEGIN ([A-Z0-9 ]+)-----", re.MULTILINE)
_WINDOW_LINE = re.compile(r"^[ \t]*(valid-[a-z]+)[ \t]*:[ \t]*(.*?)[ \t\r]*$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A public key and the time in which its signatures are accepted (by the verifier's clock; None: no limit)."""

    public_key: ec.EllipticCurvePublicKey
    valid_from: datetime | None = None
    valid_to: datetime | None = None

    @property
    def key_id(self) -> str:
        return key_id_of(self.public_key)

    def is_valid_at(self, now: datetime) -> bool:
        return (self.valid_from is None or self.valid_from <= now) and (self.valid_to is None or now < self.valid_to)

    def verify(self, signature: bytes, payload: bytes) -> None:
        """Raise `BadSignature` unless `signature` is this key's DER ECDSA signature over `payload`."""
        try:
            self.public_key.verify(signature, payload, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature as error:
            raise BadSignature("the signature does not belong to this content") from error


class TrustedKeys:
    """A fixed set of trusted keys; never fetched from the place whose signatures it checks."""

    def __init__(self, keys: Iterable[TrustedKey]) -> None:
        self._keys = {key.key_id: key for key in keys}

    @classmethod
    def from_pem(cls, text: str) -> "TrustedKeys":
        """Read one or more PEM public keys.

        Lines `Valid-From: 2026-01-01T00:00:00+00:00` and `Valid-To: …` before a key limit when it is trusted.

        Raises:
            KeyFileError: no key, another kind of PEM block, a key that is not P-256, or an unreadable time.

        """
        kinds = _PEM_BEGIN.findall(text)
        if set(kinds) != {"PUBLIC KEY"}:
            raise KeyFileError(f"trusted keys must be PEM blocks 'PUBLIC KEY', found {sorted(set(kinds)) or 'none'}")
        blocks = list(_PEM_BLOCK.finditer(text))
        if len(blocks) != len(kinds):
            raise KeyFileError("a trusted key is cut off: its END line is missing")
        keys = []
        position = 0
        for block in blocks:
            keys.append(_read_key(block.group(), preamble=text[position : block.start()]))
            position = block.end()
        return cls(keys)

    def find(self, key_id: str, *, now: datetime | None = None) -> TrustedKey:
        """The trusted key with this id.

        Raises:
            UnknownKey: none has it. KeyNotValid: it is not trusted at `now` (default: the present).

        """
        key = self._keys.get(key_id)
        if key is None:
            raise UnknownKey(key_id)
        if not key.is_valid_at(now or datetime.now(UTC)):
            raise KeyNotValid(key_id)
        return key


def pem_of(public_key: ec.EllipticCurvePublicKey) -> str:
    return public_key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode(
        "ascii"
    )


def key_id_of(public_key: ec.EllipticCurvePublicKey) -> str:
    """SHA-256 in hex of the PEM text: what the public model-signing tool expects as the bundle's key hint."""
    return hashlib.sha256(pem_of(public_key).encode("ascii")).hexdigest()


def _read_key(pem: str, *, preamble: str) -> TrustedKey:
    try:
        key = serialization.load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise KeyFileError("a trusted key is not a readable PEM public key") from error
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise KeyFileError("a trusted key is not an ECDSA key on the curve P-256")
    window = {name.lower(): _read_time(value) for name, value in _WINDOW_LINE.findall(preamble)}
    if not window.keys() <= {"valid-from", "valid-to"}:
        raise KeyFileError(f"only Valid-From and Valid-To may stand before a trusted key, found {sorted(window)}")
    return TrustedKey(key, valid_from=window.get("valid-from"), valid_to=window.get("valid-to"))


def _read_time(value: str) -> datetime:
    try:
        time = datetime.fromisoformat(value)
    except ValueError as error:
        raise KeyFileError(f"{value!a} is not an ISO 8601 time") from error
    if time.tzinfo is None:
        raise KeyFileError(f"{value!a} has no time zone")
    return time
