"""The key that signs versions and grants, and the publication of its public half."""

from functools import cache
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from registry import events
from registry.actors import Actor
from registry.models import SigningKey
from registry.signing.local_key import LocalKeySigner
from registry.signing.ports import Signer


@cache
def signer() -> Signer:
    """The signer the settings name; one per process."""
    return LocalKeySigner.from_pem_file(Path(settings.SIGNING_KEY_FILE))


def publish_key(*, actor: Actor, signer: Signer) -> SigningKey:
    """The published record of the signer's key, made at its first use. Runs in the caller's transaction."""
    key, created = SigningKey.objects.get_or_create(
        key_id=signer.key_id, defaults={"public_pem": signer.public_pem(), "valid_from": timezone.now()}
    )
    if created:
        events.signing_key_published(actor=actor, key=key)
    return key
