"""What a revoked key had signed is signed again by the one that signs now."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from registry import events
from registry.actors import Actor
from registry.models import Signature, SigningKey
from registry.permissions import Action, require_on_platform
from registry.selectors import versions_with_relations
from registry.services.keys import publish_key, signer
from registry.signing.dsse import reseal_statement
from registry.signing.keys import TrustedKey, read_public_key
from registry.states import VersionState

_SERVABLE = (VersionState.APPROVED.value, VersionState.YANKED.value)


def signatures_to_renew() -> list[UUID]:
    """The servable versions whose signature is by a revoked key; the rest need none any more."""
    signed = Signature.objects.filter(key__revoked_at__isnull=False, version__state__in=_SERVABLE)
    return list(signed.order_by("pk").values_list("version_id", flat=True))


@transaction.atomic
def resign_version(*, actor: Actor, version_id: UUID) -> Signature:
    """Sign the statements of a version again. Quiet if the key that made them is trusted.

    What is signed is what this database holds since the version was approved, where a trigger keeps it from changing;
    that its old signature still fits is checked, too.

    Raises:
        BadSignature: the stored statements are not those that the old key signed.
        SignerUnavailable: no key signs now.

    """
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    version = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version_id)
    signature = Signature.objects.select_related("key").get(version=version)
    if signature.key.revoked_at is None:
        return signature
    was = Signature.objects.select_related("key").get(pk=signature.pk)
    old_key, new_key = _public(was.key), signer()
    signature.key = publish_key(actor=actor, signer=new_key)
    signature.bundle = reseal_statement(was.bundle, old_key, new_key)
    signature.attestation = reseal_statement(was.attestation, old_key, new_key)
    signature.resigned_at = timezone.now()
    signature.save(update_fields=["key", "bundle", "attestation", "resigned_at"])
    events.version_resigned(actor=actor, version=version, was=was, now=signature)
    return signature


def _public(key: SigningKey) -> TrustedKey:
    return TrustedKey(read_public_key(key.public_pem))
