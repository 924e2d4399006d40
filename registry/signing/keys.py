"""The public keys that a verifier trusts, and for which time."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from registry.signing.errors import BadSignature, KeyFileError, KeyNotValid, KeyRevoked, UnknownKey

_PEM_BLOCK = re.compile(r"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", re.DOTALL)
_PEM_BEGIN = re.compile(r"^-----BEGIN ([A-Z0-9 ]+)-----", re.MULTILINE)
_LIMIT_LINE = re.compile(r"^[ \t]*(valid-[a-z]+|revo[a-z-]*)[ \t]*:[ \t]*(.*?)[ \t\r]*$", re.MULTILINE | re.IGNORECASE)


class KeyRing(Protocol):
    """Where a verifier finds the keys it trusts."""

    def find(self, key_id: str) -> "TrustedKey":
        """The trusted key with this id. Raises `UnknownKey`, or `KeyRevoked` if it is trusted no more."""
        ...


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A public key and the time in which it signs: from `valid_from` until just before `valid_to` (None: no limit).

    What it signed then counts for ever, unless it is revoked: then nothing counts, since whoever has it can write any
    time into what they sign.
    """

    public_key: ec.EllipticCurvePublicKey
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    revoked_at: datetime | None = None

    @property
    def key_id(self) -> str:
        return key_id_of(self.public_key)

    def require_valid_at(self, signed_at: datetime) -> None:
        """Raise `KeyNotValid` unless this key signs at that time."""
        begun = self.valid_from is None or self.valid_from <= signed_at
        if not begun or (self.valid_to is not None and self.valid_to <= signed_at):
            raise KeyNotValid(self.key_id)

    def verify(self, signature: bytes, payload: bytes) -> None:
        """Raise `BadSignature` unless `signature` is this key's DER ECDSA signature over `payload`."""
        try:
            self.public_key.verify(signature, payload, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature as error:
            raise BadSignature("the signature does not belong to this content") from error


class TrustedKeys:
    """A fixed set of trusted keys; never fetched from the place whose signatures it checks."""

    def __init__(self, keys: Iterable[TrustedKey]) -> None:
        self._keys: dict[str, TrustedKey] = {}
        for key in keys:
            if self._keys.setdefault(key.key_id, key) != key:
                raise KeyFileError(f"the trusted key {key.key_id} stands there twice, with different times")

    @classmethod
    def from_text(cls, text: str) -> "TrustedKeys":
        """Read the keys of a file: PEM, or JSON as Lorekeeper publishes it (`/.well-known/lorekeeper/keys.json`).

        Raises:
            KeyFileError: see `from_pem`; or JSON of another form.

        """
        return cls.from_json(text) if text.lstrip().startswith("{") else cls.from_pem(text)

    @classmethod
    def from_json(cls, text: str) -> "TrustedKeys":
        """Read `{"keys": [{"public_key": PEM, "valid_from", "valid_to", "revoked_at": time or null}]}`.

        Raises:
            KeyFileError: another form, no key, a key that is not P-256, or an unreadable time.

        """
        try:
            listed = json.loads(text)["keys"]
            keys = [_key_of(entry) for entry in listed]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise KeyFileError("trusted keys in JSON have the form of Lorekeeper's keys.json") from error
        if not keys:
            raise KeyFileError("there is no key among the trusted keys")
        return cls(keys)

    @classmethod
    def from_pem(cls, text: str) -> "TrustedKeys":
        """Read one or more PEM public keys.

        Lines `Valid-From: 2026-01-01T00:00:00+00:00` and `Valid-To: …` before a key say when it signs, a line
        `Revoked: …` that it is trusted no more.

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

    def find(self, key_id: str) -> TrustedKey:
        """The trusted key with this id.

        Raises:
            UnknownKey: none has it. KeyRevoked: it is trusted no more.

        """
        key = self._keys.get(key_id)
        if key is None:
            raise UnknownKey(key_id)
        if key.revoked_at is not None:
            raise KeyRevoked(key_id)
        return key


def pem_of(public_key: ec.EllipticCurvePublicKey) -> str:
    return public_key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode(
        "ascii"
    )


def key_id_of(public_key: ec.EllipticCurvePublicKey) -> str:
    """SHA-256 in hex of the PEM text: what the public model-signing tool expects as the bundle's key hint."""
    return hashlib.sha256(pem_of(public_key).encode("ascii")).hexdigest()


def read_public_key(pem: str) -> ec.EllipticCurvePublicKey:
    """The key of one PEM block.

    Raises:
        KeyFileError: not a readable public key, or not on the curve P-256.

    """
    try:
        key = serialization.load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise KeyFileError("a trusted key is not a readable PEM public key") from error
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise KeyFileError("a trusted key is not an ECDSA key on the curve P-256")
    return key


def render_trusted_key(pem: str, **times: datetime | None) -> str:
    """A PEM key with the lines before it that say when it signs; what `TrustedKeys.from_pem` reads.

    Args:
        pem: the public key.
        times: `valid_from`, `valid_to`, `revoked`; None writes no line.

    """
    lines = (f"{name.replace('_', '-').title()}: {time.isoformat()}\n" for name, time in times.items() if time)
    return "".join(lines) + pem.strip() + "\n"


def read_time(value: str) -> datetime | None:
    """The time that an ISO 8601 text with a time zone says; None for any other text."""
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return time if time.tzinfo else None


def _read_key(pem: str, *, preamble: str) -> TrustedKey:
    key = read_public_key(pem)
    window = {name.lower(): _limit(value) for name, value in _LIMIT_LINE.findall(preamble)}
    if not window.keys() <= {"valid-from", "valid-to", "revoked"}:
        raise KeyFileError(f"only Valid-From, Valid-To and Revoked may stand before a key, found {sorted(window)}")
    return TrustedKey(key, window.get("valid-from"), window.get("valid-to"), window.get("revoked"))


def _key_of(entry: dict[str, object]) -> TrustedKey:
    values = (entry[name] for name in ("valid_from", "valid_to", "revoked_at"))
    times = (None if value is None else _limit(str(value)) for value in values)
    return TrustedKey(read_public_key(str(entry["public_key"])), *times)


def _limit(value: str) -> datetime:
    time = read_time(value)
    if time is None:
        raise KeyFileError(f"{value!a} is not an ISO 8601 time with a time zone")
    return time
