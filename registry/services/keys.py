"""The keys that sign versions and grants: which of them signs now, how another takes over, and what is published."""

import logging
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor
from registry.errors import InvalidInput, NotFound, SignerUnavailable, StaleState
from registry.models import SigningKey
from registry.permissions import Action, require_on_platform
from registry.signing import aws_kms
from registry.signing.errors import KeyFileError
from registry.signing.local_key import LocalKeySigner
from registry.signing.ports import Signer
from registry.signing.rotation import HANDOVER, PublishedKey, choose_key

logger = logging.getLogger(__name__)


def signer() -> Signer:
    """The configured key that signs now.

    Raises:
        SignerUnavailable: none may sign now, or a key can't be used; only the log says where it lies.

    """
    signers = configured_signers()
    published = (
        PublishedKey(key.key_id, key.valid_from, key.valid_to, revoked=key.revoked_at is not None)
        for key in SigningKey.objects.filter(key_id__in=list(signers))
    )
    chosen = choose_key(list(signers), published, now=timezone.now())
    if chosen is None:
        logger.error("none of the keys in LOREKEEPER_SIGNING_KEY signs now: %s", ", ".join(signers) or "there is none")
        raise SignerUnavailable(_("No signing key may sign now. An operator has to look at it."))
    return signers[chosen]


def configured_signers() -> dict[str, Signer]:
    """The signers that the settings name, by key id and in that order.

    Raises:
        SignerUnavailable: one of them can't be used. To go on without it would let another take over unasked.

    """
    try:
        made = [signer_at(place) for place in settings.SIGNING_KEYS]
    except KeyFileError as error:
        logger.exception("a signing key can't be used")
        raise SignerUnavailable(_("The signing key can't be used. An operator has to look at it.")) from error
    return {each.key_id: each for each in made}


@cache
def signer_at(place: str) -> Signer:
    """The signer of one setting, a path or the address of a KMS key; one per process.

    Raises:
        KeyFileError, SignerUnavailable: it can't be used; asked again, it is tried again.

    """
    if place.startswith(f"{aws_kms.SCHEME}:"):
        return aws_kms.AwsKmsSigner(*aws_kms.kms_client(place))
    return LocalKeySigner.from_pem_file(Path(place))


def publish_key(*, actor: Actor, signer: Signer) -> SigningKey:
    """The published record of the signer's key, made at its first use. Runs in the caller's transaction.

    It stays locked until that ends: what it signed is either seen by whoever revokes it, or not kept at all.

    Raises:
        StaleState: the key was revoked since it signed.

    """
    # What made it known was signed a moment before.
    began = timezone.now().replace(microsecond=0) - HANDOVER
    key, created = SigningKey.objects.get_or_create(
        key_id=signer.key_id, defaults={"public_pem": signer.public_pem(), "valid_from": began}
    )
    if created:
        events.signing_key_published(actor=actor, key=key)
        return key
    locked = _locked_keys().get(pk=key.pk)
    if locked.revoked_at is not None:
        raise StaleState(_("The key that signed this was revoked just now. Try again."))
    return locked


@transaction.atomic
def rotate_signing_key(*, actor: Actor, key_id: str | None = None, at: datetime | None = None) -> SigningKey:
    """Let a configured key sign from ``at`` on (default: now), and end the time of all others a little later.

    Until then it is published as the coming one, so that verifiers can learn of it. Quiet if it has taken over already.

    Args:
        actor: a platform admin, or the system.
        key_id: which of the configured keys; default: the only one that is not published yet.
        at: with time zone, not past.

    Raises:
        NotFound: no such key is configured. InvalidInput: ``at`` is past, the key's time is over, or ``key_id`` is
            needed to tell which.

    """
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    published = list(_locked_keys())
    coming = _coming_signer(key_id, published)
    now = timezone.now()
    known = next((key for key in published if key.key_id == coming.key_id), None)
    if known is not None:
        return _still_signing(known, now)
    begins = (at or now).replace(microsecond=0)
    if begins < now.replace(microsecond=0):
        raise InvalidInput(_("A key can't begin in the past."), field="at")
    made = SigningKey.objects.create(
        key_id=coming.key_id,
        public_pem=coming.public_pem(),
        valid_from=begins,
        valid_to=_end_before_next(published, begins),
    )
    events.signing_key_published(actor=actor, key=made)
    for key in published:
        if key.valid_from <= begins:
            _end(actor, key, begins + HANDOVER)
    return made


@transaction.atomic
def revoke_signing_key(*, actor: Actor, key_id: str, reason: str) -> SigningKey:
    """Trust nothing any more that the key signed, whenever that was. Quiet if it is revoked already.

    What it signed has to be signed again: ``registry.services.resigning``.
    """
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    key = _locked_keys().filter(key_id=key_id).first()
    if key is None:
        raise NotFound(_("No key with this id was ever published."), field="key_id")
    if key.revoked_at is None:
        key.revoked_at, key.revoked_reason = timezone.now(), reason
        key.save(update_fields=["revoked_at", "revoked_reason"])
        events.signing_key_revoked(actor=actor, key=key)
    return key


def _locked_keys() -> QuerySet[SigningKey]:
    return SigningKey.objects.select_for_update(of=("self",), no_key=True).order_by("valid_from", "pk")


def _coming_signer(key_id: str | None, published: Iterable[SigningKey]) -> Signer:
    signers = configured_signers()
    if key_id is not None:
        if key_id not in signers:
            raise NotFound(_("No key with this id is configured (LOREKEEPER_SIGNING_KEY)."), field="key_id")
        return signers[key_id]
    new = signers.keys() - {key.key_id for key in published}
    if len(new) == 1:
        return signers[new.pop()]
    raise InvalidInput(
        _("%(count)d configured keys are not published yet; name the one that takes over.") % {"count": len(new)},
        field="key_id",
    )


def _still_signing(key: SigningKey, now: datetime) -> SigningKey:
    if key.revoked_at is not None or (key.valid_to is not None and key.valid_to <= now + HANDOVER):
        raise InvalidInput(_("The time of this key is over. Make a new one: keys are not used again."), field="key_id")
    return key


def _end_before_next(published: Iterable[SigningKey], begins: datetime) -> datetime | None:
    """The end of a key that begins before another whose rotation is planned already."""
    later = [key.valid_from for key in published if key.valid_from > begins and key.revoked_at is None]
    return min(later) + HANDOVER if later else None


def _end(actor: Actor, key: SigningKey, end: datetime) -> None:
    """Shorten the time of a key that would sign longer; one that ended or was revoked stays as it is."""
    if key.revoked_at is not None or (key.valid_to is not None and key.valid_to <= end):
        return
    was, key.valid_to = key.valid_to, end
    key.save(update_fields=["valid_to"])
    events.signing_key_ended(actor=actor, key=key, was=was)
