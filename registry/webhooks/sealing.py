"""Secrets at rest: encrypted with a key made from the server's own, bound to the endpoint that they belong to. Pure.

Unlike a token, of which a digest is enough, a secret that signs has to be read again.
"""

import hashlib
import os
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_PURPOSE: Final = b"lorekeeper webhook secret\0"
_NONCE_BYTES: Final = 12


class SecretUnreadable(Exception):
    """None of the server's keys opens it: it was sealed with one that is gone, or for another endpoint."""


def seal(secret: bytes, *, key: str, endpoint: UUID) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + _cipher(key).encrypt(nonce, secret, endpoint.bytes)


def open_sealed(sealed: bytes, *, keys: Sequence[str], endpoint: UUID) -> bytes:
    """What ``seal`` was given, with the first of ``keys`` that fits. Raises ``SecretUnreadable``."""
    for key in keys:
        try:
            return _cipher(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], endpoint.bytes)
        except InvalidTag:
            continue
    raise SecretUnreadable


def _cipher(key: str) -> AESGCM:
    return AESGCM(hashlib.sha256(_PURPOSE + key.encode()).digest())
