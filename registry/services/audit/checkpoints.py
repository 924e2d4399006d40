"""Signed checkpoints of the audit chains, kept in the store: proof against whoever can rewrite the database.

A checkpoint is signed only over records that still hang together with the last one that was signed, and only if the
store has nothing that speaks against it. So what was tampered with is never signed over, and is told again each time.
"""

import logging
from typing import Final

from django.conf import settings
from django.db import connection, transaction
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import AuditBroken
from registry.models import AuditCheckpoint, AuditRecord, SigningKey
from registry.permissions import Action, require_on_platform
from registry.services.keys import publish_key, signer
from registry.services.stores import checkpoint_store
from registry.signing import checkpoints as signed
from registry.signing.errors import BadSignature, KeyRevoked, SigningError, UnknownKey
from registry.signing.keys import TrustedKey, read_public_key
from registry.stores.checkpoints import KeptCheckpoint, after_seq, checkpoint_key
from registry.stores.errors import ObjectMissing

logger = logging.getLogger(__name__)
_NOTHING: Final = "0" * 64


def make_checkpoint(*, actor: Actor, chain: str) -> AuditCheckpoint | None:
    """Sign where the chain stands and keep that in the store. Quiet if it stands where it stood; None if it is empty.

    Killed anywhere, or done by two at once, it makes no two checkpoints of one record by one key.

    Raises:
        AuditBroken: the chain is not what was signed before, or does not hang together. Nothing was signed.
        StoreUnavailable, SignerUnavailable: the next run does it.

    """
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    last = _adopt_what_the_store_has(chain)
    head = AuditRecord.objects.filter(chain=chain).order_by("-seq").first()
    _require_unbroken(chain, last, head)
    if head is None:
        return None
    key = signer()
    if last is not None and (last.seq, last.key_id) == (head.seq, key.key_id):
        return last
    # Before it signs: a key counts from the time on at which it is published.
    with transaction.atomic():
        publish_key(actor=actor, signer=key)
    text = signed.sign_checkpoint(
        key,
        signed.AuditCheckpoint(
            chain=chain,
            seq=head.seq,
            head=head.hash,
            first=hash_of(chain, 1),
            previous="" if last is None else last.sha256,
        ),
    )
    place = checkpoint_key(chain=chain, seq=head.seq, key_id=key.key_id)
    kept = checkpoint_store().put(place, text.encode())
    # Somebody else, or a run that was killed, was here first: theirs counts.
    stands = text if kept.is_new else checkpoint_store().read(place).decode()
    return _remember(place, stands, kept)


def chains_due() -> list[str]:
    """The chains that have grown, with the last checkpoint longer ago than the settings want."""
    with connection.cursor() as cursor:
        sql = "SELECT chain FROM audit_checkpoints_due(make_interval(secs => %s))"
        cursor.execute(sql, [settings.AUDIT_CHECKPOINT_S])
        return [chain for (chain,) in cursor.fetchall()]


def read_checkpoint(*, checkpoint: AuditCheckpoint) -> str:
    """The signed text as the store has it. Raises ``ObjectMissing`` if the store has lost it."""
    return checkpoint_store().read(checkpoint.object_key).decode(errors="replace")


class _PublishedKeys:
    """The keys that this platform has published, as they stand now."""

    def find(self, key_id: str) -> TrustedKey:
        key = SigningKey.objects.filter(key_id=key_id).first()
        if key is None:
            raise UnknownKey(key_id)
        if key.revoked_at is not None:
            raise KeyRevoked(key_id)
        return TrustedKey(read_public_key(key.public_pem), key.valid_from, key.valid_to)


def _adopt_what_the_store_has(chain: str) -> AuditCheckpoint | None:
    """The newest checkpoint, after taking up those that the store has and the database doesn't know.

    A run that was killed leaves one. So does a database that was set back, or emptied: then the records don't fit it.
    """
    last = _newest(chain)
    # The database alone proves nothing: what the index says counts as far as the store bears it out.
    place = after_seq(chain, last.seq) if last is not None and store_bears_out(last) else ""
    while (found := checkpoint_store().first_after(chain, place)) is not None:
        place = found
        text = checkpoint_store().read(place).decode(errors="replace")
        try:
            _remember(place, text, KeptCheckpoint(is_new=False))
        except SigningError as error:
            # Whoever may write into the bucket could stop all checkpoints otherwise.
            logger.error("%s in the store counts for nothing: %s", place, error)  # noqa: TRY400  the reason is enough
    return _newest(chain)


def _newest(chain: str) -> AuditCheckpoint | None:
    return AuditCheckpoint.objects.filter(chain=chain).order_by("-seq", "-id").first()


def store_bears_out(checkpoint: AuditCheckpoint) -> bool:
    """Whether the store has it, rightly signed, and it says the same. Raises ``StoreUnavailable``."""
    try:
        said = signed.open_checkpoint(read_checkpoint(checkpoint=checkpoint), _PublishedKeys())
    except (ObjectMissing, SigningError) as error:
        logger.warning("%s does not bear out its index, all that the store has is read: %s", checkpoint, error)
        return False
    return (said.chain, said.seq, said.head) == (checkpoint.chain, checkpoint.seq, checkpoint.head)


def _require_unbroken(chain: str, last: AuditCheckpoint | None, head: AuditRecord | None) -> None:
    seq, signed_head = (0, _NOTHING) if last is None else (last.seq, last.head)
    if seq > (0 if head is None else head.seq):
        raise AuditBroken(
            _("The audit log of %(chain)s had %(seq)d records when it was signed, and has fewer now.")
            % {"chain": chain, "seq": seq}
        )
    if last is not None and hash_of(chain, seq) != signed_head:
        raise AuditBroken(
            _("Record %(seq)d of the audit log of %(chain)s is not the one that was signed.")
            % {"chain": chain, "seq": seq}
        )
    broken = _first_broken(chain, seq, signed_head)
    if broken is not None:
        raise AuditBroken(
            _("The audit log of %(chain)s does not hang together at record %(seq)d.") % {"chain": chain, "seq": broken}
        )


def _first_broken(chain: str, seq: int, signed_head: str) -> int | None:
    """The first record that does not fit behind the signed one, or 1 if the log has lost its beginning."""
    if seq and not hash_of(chain, 1):
        return 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT audit_first_broken(%s, %s, %s)", [chain, seq, signed_head])
        (broken,) = cursor.fetchone()
    return None if broken is None else int(broken)


def hash_of(chain: str, seq: int) -> str:
    """What a record's hash is written down as; empty if there is no such record."""
    return AuditRecord.objects.filter(chain=chain, seq=seq).values_list("hash", flat=True).first() or ""


@transaction.atomic
def _remember(place: str, text: str, kept: KeptCheckpoint) -> AuditCheckpoint:
    """Write down where a checkpoint lies that the store has, if its signature and the log agree with it."""
    said = signed.open_checkpoint(text, _PublishedKeys())
    if hash_of(said.chain, said.seq) != said.head:
        raise AuditBroken(
            _("The store has a signed checkpoint, %(place)s, that the audit log contradicts.") % {"place": place}
        )
    if place != checkpoint_key(chain=said.chain, seq=said.seq, key_id=said.key_id):
        raise BadSignature(f"it is a copy of the checkpoint of record {said.seq} of {said.chain}")
    found, _is_new = AuditCheckpoint.objects.get_or_create(
        object_key=place,
        defaults={
            "chain": said.chain,
            "seq": said.seq,
            "head": said.head,
            "sha256": signed.digest_of_checkpoint(text),
            "key_id": said.key_id,
            "locked_until": kept.locked_until,
        },
    )
    return found
