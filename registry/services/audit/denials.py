"""What the audit log is told of callers: denied attempts, and log-ins.

Neither may flood the log nor hold anybody up. So each is told once in a while and counted in between; there is a limit
to what callers without an account can have told; and nobody waits for a chain that is busy: then a sweep tells it.
Each runs in its own transaction, after whatever it belongs to was rolled back.
"""

import hashlib
import logging
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from registry import events
from registry.actors import Actor
from registry.audit import PLATFORM_CHAIN
from registry.models import ApiToken, AuditNotice, Tenant
from registry.permissions import can_see_tenant

logger = logging.getLogger(__name__)

# Equal attempts of one caller are one record, and one more when this time is over and there were more.
DENIAL_WINDOW: Final = timedelta(minutes=10)
# A token that comes from the same address again within this time is no new log-in.
LOG_IN_WINDOW: Final = timedelta(hours=24)
# So many addresses without an account are told apart at a time, and so many addresses of one token.
MAX_SOURCES: Final = 50
_ANONYMOUS: Final = "anonymous:"
_LOG_IN: Final = "log_in:"
_KEY_LENGTH: Final = 64
_PATIENCE: Final = "300ms"
_MAX_TOLD: Final = 200
_MAX_REMEMBERED: Final = 10_000
# Log-ins that this process knows to be told, with the time until then it needs not look again.
_known: dict[tuple[str, str], datetime] = {}


def note_denial(*, actor: Actor, chain: str, group: Iterable[str], request: dict[str, str], reason: str) -> None:
    """Tell of a denied attempt, or count it if one like it was told a short while ago.

    Args:
        actor: who tried; of the kind ``anonymous`` without an account.
        chain: where it is told; see ``chain_for``.
        group: what makes attempts of this actor alike; of few values, so that an actor can't make many records.
        request: kind, id and name of what was asked for.
        reason: why it was denied, as the caller was told.

    """
    now = timezone.now()
    key = _anonymous_key(actor, now) if _is_unknown(actor) else _digest(actor.kind, actor.id, *group)
    facts = {"actor": _told_of(actor), "request": request, "reason": reason}
    try:
        notice, is_new = _count(chain, key, facts, now)
        if is_new:
            _tell(notice.pk, now=now)
    except DatabaseError as error:
        logger.warning("a denied attempt of %s is not told now: %s", actor.id, error)


def note_log_in(*, actor: Actor, chain: str, token: ApiToken) -> None:
    """Tell that a token came from an address that it had not come from for a day."""
    now = timezone.now()
    seen = (token.prefix, actor.source)
    if _known.get(seen, now) > now:
        return
    try:
        with transaction.atomic():
            _be_impatient()
            if _is_new_log_in(chain, token, actor.source, now):
                events.token_first_used(actor=actor, chain=chain, token=token)
    except DatabaseError as error:
        logger.warning("a log-in of %s is told at its next request: %s", actor.id, error)
        return
    if len(_known) >= _MAX_REMEMBERED:
        _known.clear()
    _known[seen] = now + DENIAL_WINDOW


def chain_for(*, actor: Actor, tenant: str | int | None) -> str:
    """The chain that is told of what ``actor`` did at a tenant: the tenant's own, if the actor belongs to it.

    What outsiders try is the platform's business: a tenant learns nothing of people that aren't its own.

    Args:
        actor: who did it.
        tenant: its name or its primary key; None for what is no tenant's.

    """
    if tenant is None:
        return PLATFORM_CHAIN
    known = {"pk": tenant} if isinstance(tenant, int) else {"name": tenant}
    found = Tenant.objects.filter(**known).first()
    if found is None or not (can_see_tenant(actor, found.pk) or actor.tenant_id == found.pk):
        return PLATFORM_CHAIN
    return found.name


def tell_notices() -> int:
    """The sweep: tell what could not be told at once, and how often what was told came again; returns how many."""
    now = timezone.now()
    due = AuditNotice.objects.filter(Q(told=0) | Q(ends_at__lte=now)).order_by("ends_at")
    keys = list(due.values_list("pk", flat=True)[:_MAX_TOLD])
    return sum(_tell_on_its_own(pk, now) for pk in keys)


def _count(chain: str, key: str, facts: dict[str, Any], now: datetime) -> tuple[AuditNotice, bool]:
    notice, is_new = AuditNotice.objects.get_or_create(
        chain=chain,
        key=key,
        defaults={"facts": facts, "began_at": now, "last_at": now, "ends_at": now + DENIAL_WINDOW},
    )
    # In this moment the sweep may have told all of it and forgotten it.
    if not is_new and not AuditNotice.objects.filter(pk=notice.pk).update(count=F("count") + 1, last_at=now):
        return _count(chain, key, facts, now)
    return notice, is_new


def _tell_on_its_own(pk: int, now: datetime) -> bool:
    try:
        _tell(pk, now=now)
    except DatabaseError as error:
        logger.warning("notice %s is told at the next sweep: %s", pk, error)
        return False
    return True


@transaction.atomic
def _tell(pk: int, *, now: datetime) -> None:
    """Append what the log doesn't have yet of a notice, and forget the notice when its time is over."""
    _be_impatient()
    locked = AuditNotice.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
    notice = locked.filter(pk=pk).first()
    if notice is None:
        return
    untold = notice.count - notice.told
    if untold and notice.facts:
        facts = notice.facts
        events.access_denied(
            actor=Actor(**facts["actor"]),
            chain=notice.chain,
            request=facts["request"],
            reason=facts["reason"],
            after={"attempts": untold, "since": _moment(notice.began_at), "until": _moment(notice.last_at)},
        )
        AuditNotice.objects.filter(pk=pk).update(told=notice.count)
    if notice.ends_at <= now:
        notice.delete()


def _is_new_log_in(chain: str, token: ApiToken, source: str, now: datetime) -> bool:
    mine = f"{_LOG_IN}{token.prefix}:"
    known = AuditNotice.objects.filter(chain=chain, key__startswith=mine)
    key = f"{mine}{_digest(source)}"[:_KEY_LENGTH]
    if known.exclude(key=key).count() >= MAX_SOURCES:
        key = f"{mine}others"
    told = {"facts": {}, "told": 1, "began_at": now, "last_at": now, "ends_at": now + LOG_IN_WINDOW}
    notice, is_new = AuditNotice.objects.get_or_create(chain=chain, key=key, defaults=told)
    if is_new or notice.ends_at > now:
        return is_new
    # The sweep forgets it, and this may come before the sweep.
    return notice.delete()[0] > 0 and _is_new_log_in(chain, token, source, now)


def _anonymous_key(actor: Actor, now: datetime) -> str:
    """One for each address, or one for all when there are too many."""
    key = f"{_ANONYMOUS}{_digest(actor.source)}"[:_KEY_LENGTH]
    others = AuditNotice.objects.filter(chain=PLATFORM_CHAIN, key__startswith=_ANONYMOUS, ends_at__gt=now)
    return f"{_ANONYMOUS}others" if others.exclude(key=key).count() >= MAX_SOURCES else key


def _is_unknown(actor: Actor) -> bool:
    """Without an account, and without a token that ever was one of ours."""
    return actor.kind == "anonymous" and not actor.token_prefix


def _be_impatient() -> None:
    """Until the transaction ends, wait for nobody's lock: whoever holds a chain may hold it for long."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{_PATIENCE}'")


def _told_of(actor: Actor) -> dict[str, str]:
    known = asdict(actor)
    return {name: known[name] for name in ("kind", "id", "name", "token_prefix", "request_id", "source", "how")}


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _moment(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds")
