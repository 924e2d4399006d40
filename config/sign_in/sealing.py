"""Secrets of authenticator apps at rest: sealed by Django's secret key, so that the database alone gives none away."""

import base64
import hashlib

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings


def sealed(text: str) -> str:
    return _seals().encrypt(text.encode()).decode()


def opened(text: str) -> str:
    """Raises ``cryptography.fernet.InvalidToken`` for what none of the secret keys sealed."""
    return _seals().decrypt(text.encode()).decode()


def _seals() -> MultiFernet:
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(_derived(key))) for key in keys])


def _derived(key: str) -> bytes:
    return hashlib.sha256(b"lorekeeper.second-factor:" + key.encode()).digest()
