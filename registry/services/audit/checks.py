"""Checking a chain from its first record to its last, in slices, by a worker; and how a chain stands.

A check holds every record against the one before it and against its own hash, and the chain against its signed
checkpoints, each as the store has it: what hangs together and ends in what was signed is what was written.
"""

import logging
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from registry.actors import Actor
from registry.audit import PLATFORM_CHAIN
from registry.dispatch import CHECK_AUDIT, nudge
from registry.models import AuditCheck, AuditCheckpoint, AuditRecord, SigningKey
from registry.selectors import list_audit
from registry.services.audit.checkpoints import hash_of, store_bears_out
from registry.services.audit.search import Found, Wanted, find_in

logger = logging.getLogger(__name__)

# What a check finds, in one word.
CUT_OFF: Final = "cut_off"
REPLACED: Final = "replaced"
UNLINKED: Final = "unlinked"
NOT_SIGNED: Final = "not_signed"

SLICE: Final = 20_000
_TURN_S: Final = 20.0
_STALLED: Final = timedelta(minutes=1)
_NOTHING: Final = "0" * 64
# A checkpoint that comes later than this many intervals has something in its way.
_LATE: Final = 3


@dataclass(frozen=True, slots=True)
class ChainState:
    """How a chain stands.

    Attributes:
        head: the newest record; None while the chain is empty.
        checkpoint: the newest signed checkpoint.
        check: the newest check that has ended.
        running: the check that has not.
        finding: what is wrong, in one word; empty as long as nothing is.
        broken_at: the record that it is wrong at.
        is_late: there are records that should have been signed long ago.

    """

    head: AuditRecord | None
    checkpoint: AuditCheckpoint | None
    check: AuditCheck | None
    running: AuditCheck | None
    finding: str
    broken_at: int | None
    is_late: bool


def chain_state(*, actor: Actor, tenant: str | None) -> ChainState:
    """What is known of the chain without checking it again, but that its end is still what was signed."""
    list_audit(actor=actor, tenant=tenant)
    return _state_of(tenant or PLATFORM_CHAIN)


def read_log(
    *, actor: Actor, tenant: str | None, wanted: Wanted, before: int | None = None, after: int | None = None
) -> tuple[Found, ChainState]:
    """Records of a tenant's chain, or the platform's, as ``find_in`` finds them, and how that chain stands."""
    list_audit(actor=actor, tenant=tenant)
    chain = tenant or PLATFORM_CHAIN
    return find_in(chain, wanted, before=before, after=after), _state_of(chain)


@transaction.atomic
def begin_check(*, actor: Actor, tenant: str | None) -> AuditCheck:
    """Have the chain checked by a worker; if that goes on already, this is it."""
    head = list_audit(actor=actor, tenant=tenant).order_by("-seq").first()
    check, is_new = AuditCheck.objects.get_or_create(
        chain=tenant or PLATFORM_CHAIN,
        ended_at=None,
        defaults={
            "asked_by": actor.id,
            "until": 0 if head is None else head.seq,
            "hash": _NOTHING,
            "moved_at": timezone.now(),
        },
    )
    if is_new:
        nudge(CHECK_AUDIT, check_id=check.pk)
    return check


def carry_on(*, check_id: int) -> None:
    """Go on with a check for a while; then another turn does, so that no worker is held for long."""
    ends = time.monotonic() + _TURN_S
    while (check := AuditCheck.objects.filter(pk=check_id, ended_at=None).first()) is not None:
        if time.monotonic() >= ends:
            nudge(CHECK_AUDIT, check_id=check_id)
            return
        _check_slice(check)


def stalled_checks() -> list[int]:
    """Checks that have not moved for a while: whatever carried them on was lost or killed."""
    still = AuditCheck.objects.filter(ended_at=None, moved_at__lt=timezone.now() - _STALLED)
    return list(still.values_list("pk", flat=True))


def _check_slice(check: AuditCheck) -> None:
    end = min(check.reached + SLICE, check.until)
    finding, broken_at = _fault(check, end)
    if finding:
        logger.critical("THE AUDIT LOG OF %s WAS CHANGED: %s at record %s", check.chain, finding, broken_at)
        _move(check, finding=finding, broken_at=broken_at, ended_at=timezone.now())
        return
    signed = _newest_checkpoint(check.chain, after=check.reached, until=end)
    _move(
        check,
        reached=end,
        hash=hash_of(check.chain, end) or _NOTHING,
        signed_to=check.signed_to if signed is None else signed.seq,
        ended_at=timezone.now() if end == check.until else None,
    )


def _move(check: AuditCheck, **facts: object) -> None:
    # Whoever does the same slice at the same time comes to the same end, and only the first is written down.
    AuditCheck.objects.filter(pk=check.pk, reached=check.reached, ended_at=None).update(
        moved_at=timezone.now(), **facts
    )


def _fault(check: AuditCheck, end: int) -> tuple[str, int | None]:
    """What is wrong with the records behind ``check.reached`` up to ``end``."""
    broken = _first_broken(check, end)
    if broken is not None:
        return UNLINKED, broken
    last = AuditRecord.objects.filter(chain=check.chain, seq__lte=end).order_by("-seq").first()
    if end and (last is None or last.seq < end):
        return CUT_OFF, 1 if last is None else last.seq + 1
    signed = _newest_checkpoint(check.chain, after=check.reached, until=end)
    if signed is not None and hash_of(check.chain, signed.seq) != signed.head:
        return REPLACED, signed.seq
    if signed is not None and not store_bears_out(signed):
        return NOT_SIGNED, signed.seq
    newest = _newest_checkpoint(check.chain) if end == check.until else None
    if newest is not None and newest.seq > end and not hash_of(check.chain, newest.seq):
        return CUT_OFF, end + 1
    return "", None


def _first_broken(check: AuditCheck, end: int) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT audit_first_broken_until(%s, %s, %s, %s)", [check.chain, check.reached, check.hash, end])
        (broken,) = cursor.fetchone()
    return None if broken is None else int(broken)


def _newest_checkpoint(chain: str, *, after: int = 0, until: int | None = None) -> AuditCheckpoint | None:
    """Of those by keys that were not revoked; they alone prove something."""
    revoked = SigningKey.objects.filter(revoked_at__isnull=False).values("key_id")
    found = AuditCheckpoint.objects.filter(chain=chain, seq__gt=after).exclude(key_id__in=revoked)
    if until is not None:
        found = found.filter(seq__lte=until)
    return found.order_by("-seq", "-id").first()


def _state_of(chain: str) -> ChainState:
    checkpoint = _newest_checkpoint(chain)
    signed_to = 0 if checkpoint is None else checkpoint.seq
    records = AuditRecord.objects.filter(chain=chain)
    # A chain has no gaps, so that the first record that isn't signed has the next number.
    wanted = records.filter(seq__in=(signed_to, signed_to + 1))
    known = {each.seq: each for each in records.order_by("-seq")[:1].union(wanted, all=True)}
    head = known[max(known)] if known else None
    newest = list(AuditCheck.objects.filter(chain=chain).order_by("-id")[:2])
    check = next((each for each in newest if each.ended_at is not None), None)
    running = next((each for each in newest if each.ended_at is None), None)
    finding, broken_at = _at_a_glance(known, checkpoint)
    if not finding and check is not None:
        finding, broken_at = check.finding, check.broken_at
    return ChainState(head, checkpoint, check, running, finding, broken_at, _is_late(known, signed_to))


def _at_a_glance(known: dict[int, AuditRecord], checkpoint: AuditCheckpoint | None) -> tuple[str, int | None]:
    """``known``: the newest record, the signed one and the one behind that, as far as they are there."""
    if checkpoint is None:
        return "", None
    last = max(known, default=0)
    if last < checkpoint.seq:
        return CUT_OFF, last + 1
    signed = known.get(checkpoint.seq)
    return ("", None) if signed is not None and signed.hash == checkpoint.head else (REPLACED, checkpoint.seq)


def _is_late(known: dict[int, AuditRecord], signed_to: int) -> bool:
    """Whether the first record that isn't signed has waited too long; later ones say nothing of that."""
    unsigned = [seq for seq in known if seq > signed_to]
    return bool(unsigned) and known[min(unsigned)].at < timezone.now() - _LATE * timedelta(
        seconds=settings.AUDIT_CHECKPOINT_S
    )
