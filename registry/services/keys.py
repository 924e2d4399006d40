"""The key that signs versions and grants, and the publication of its public half."""

import logging
from functools import cache
from pathlib import Path

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor
from registry.errors import SignerUnavailable
from registry.models import SigningKey
from registry.signing.errors import KeyFileError
from registry.signing.local_key import LocalKeySigner
from registry.signing.ports import Signer

logger = logging.getLogger(__name__)


@cache
def signer() -> Signer:
    """The signer the settings name; one per process. Raises ``SignerUnavailable``, and only logs where the key lies."""
    try:
        return LocalKeySigner.from_pem_file(Path(settings.SIGNING_KEY_FILE))
    except KeyFileError as error:
        logger.exception("the signing key can't be used")
        raise SignerUnavailable(_("The signing key can't be used. An operator has to look at it.")) from error


def publish_key(*, actor: Actor, signer: Signer) -> SigningKey:
    """The published record of the signer's key, made at its first use. Runs in the caller's transaction."""
    key, created = SigningKey.objects.get_or_create(
        key_id=signer.key_id, defaults={"public_pem": signer.public_pem(), "valid_from": timezone.now()}
    )
    if created:
        events.signing_key_published(actor=actor, key=key)
    return key
