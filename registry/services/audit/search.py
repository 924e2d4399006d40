"""Finding records of the audit log; how that stays cheap is written in ``registry/sql/audit_search.sql``."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import NotFound
from registry.models import AuditRecord
from registry.selectors import list_audit

DENIED: Final = "denied"
ALLOWED: Final = "allowed"
# A clock that was set back makes times that don't rise with the numbers; so much of it hides no record.
_CLOCK_SLACK: Final = timedelta(minutes=5)
# Records that one search looks through at most, before it says how far it came.
SPAN: Final = 6_000_000
# As many, when they have to be held against several terms, of which each may be in all of them.
_SPAN_OF_SEVERAL: Final = 1_000_000
_CHUNK: Final = 500
_BOUNDS: Final = """SELECT
    coalesce(
        (SELECT seq FROM registry_auditrecord WHERE chain = %s AND at < %s::timestamptz
         ORDER BY at DESC LIMIT 1), 0) + 1,
    coalesce(
        (SELECT seq FROM registry_auditrecord WHERE chain = %s AND at >= %s::timestamptz ORDER BY at LIMIT 1) - 1,
        (SELECT max(seq) FROM registry_auditrecord WHERE chain = %s),
        0)"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What records have to say; empty or None is no condition.

    Attributes:
        text: words that all stand somewhere in it, whole and in any order.
        who: a person's e-mail, or the id of whatever else acted.
        token: the prefix of the token that was used.
        object: the name or id of what it was done to; an adapter's name finds its versions, too.
        action: a tag or its beginning up to a colon.
        outcome: ``denied``, ``allowed`` or empty.
        request_id: the request that it belongs to.
        since: not earlier.
        until: earlier.

    """

    text: str = ""
    who: str = ""
    token: str = ""
    object: str = ""
    action: str = ""
    outcome: str = ""
    request_id: str = ""
    since: datetime | None = None
    until: datetime | None = None

    @property
    def terms(self) -> list[str]:
        """As the index has them, but for the words."""
        given = {
            "p": self.who.lower(),
            "t": self.token,
            "o": self.object.lower(),
            "x": self.action.rstrip(":"),
            "r": self.outcome,
            "q": self.request_id,
        }
        return [f"{kind}:{value}" for kind, value in given.items() if value]

    @property
    def conditions(self) -> int:
        """How many terms a record has to have."""
        return len(self.terms) + len(self.text.split())

    def told(self) -> dict[str, str]:
        """What was asked for, as the log is told of it."""
        given = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in given.items() if value
        }


@dataclass(frozen=True, slots=True)
class Found:
    """Some of what was wanted, newest first.

    Attributes:
        records: at most as many as were asked for.
        has_newer: there may be newer ones.
        has_older: there may be older ones.
        looked_from: the newest number that was looked at.
        looked_to: the oldest number that was looked at.
        is_cut: it stopped there before it had as many as were asked for, and there are older records.

    """

    records: list[AuditRecord]
    has_newer: bool
    has_older: bool
    looked_from: int
    looked_to: int
    is_cut: bool = False


def find_in(
    chain: str, wanted: Wanted, *, before: int | None = None, after: int | None = None, limit: int = 50
) -> Found:
    """Records of a chain: the newest, or those next to a number. Whoever calls has asked whether it may be read.

    Args:
        chain: a tenant's name, or ``platform``.
        wanted: what they say.
        before: only older ones than this number.
        after: only newer ones than this number, beginning with those next to it.
        limit: how many at most.

    """
    bottom, top = _bounds(chain, wanted)
    span = SPAN if wanted.conditions == 1 else min(SPAN, _SPAN_OF_SEVERAL)
    if after is not None:
        low = max(bottom, after + 1)
        high = min(top, low + span)
        found = _between(chain, wanted, low, high, limit + 1, is_up=True)
        # Newer ones that are too far for one look are as good as found ones.
        return Found(found[:limit][::-1], len(found) > limit or high < top, low > bottom, high, low)
    high = top if before is None else min(top, before - 1)
    low = max(bottom, high - span)
    found = _between(chain, wanted, low, high, limit + 1)
    more = len(found) > limit
    is_cut = not more and low > bottom
    return Found(found[:limit], high < top, more or is_cut, high, low, is_cut)


def walk_audit(chain: str, wanted: Wanted, *, until: int) -> Iterator[AuditRecord]:
    """All that is wanted up to the number ``until``, oldest first. Whoever calls has asked whether it may be read."""
    bottom, top = _bounds(chain, wanted)
    low, top = bottom, min(top, until)
    while low <= top:
        high = min(top, low + SPAN)
        found = _between(chain, wanted, low, high, _CHUNK, is_up=True)
        yield from found
        low = found[-1].seq + 1 if len(found) == _CHUNK else high + 1


def get_record(*, actor: Actor, tenant: str | None, seq: int) -> tuple[AuditRecord, dict[int, AuditRecord]]:
    """A record and those next to it by their numbers. Raises ``NotFound``."""
    near = {each.seq: each for each in list_audit(actor=actor, tenant=tenant).filter(seq__range=(seq - 1, seq + 1))}
    record = near.pop(seq, None)
    if record is None:
        raise NotFound(_("The log has no record with the number %(seq)d.") % {"seq": seq}, field="seq")
    return record, near


def _bounds(chain: str, wanted: Wanted) -> tuple[int, int]:
    """Numbers between which all records of the wanted time lie; more exact than that are the times themselves."""
    since = None if wanted.since is None else wanted.since - _CLOCK_SLACK
    until = None if wanted.until is None else wanted.until + _CLOCK_SLACK
    with connection.cursor() as cursor:
        cursor.execute(_BOUNDS, [chain, since, chain, until, chain])
        bottom, top = cursor.fetchone()
    return int(bottom), int(top)


def _between(
    chain: str, wanted: Wanted, bottom: int, top: int, limit: int, *, is_up: bool = False
) -> list[AuditRecord]:
    if wanted.terms or wanted.text:
        sql = "SELECT * FROM audit_find(%s, %s::text[] || audit_words(%s), %s, %s, %s, %s, %s, %s)"
        given = [chain, wanted.terms, wanted.text, bottom, top, wanted.since, wanted.until, is_up, limit]
        return list(AuditRecord.objects.raw(sql, given))
    records = AuditRecord.objects.filter(chain=chain, seq__range=(bottom, top))
    if wanted.since is not None:
        records = records.filter(at__gte=wanted.since)
    if wanted.until is not None:
        records = records.filter(at__lt=wanted.until)
    return list(records.order_by("seq" if is_up else "-seq")[:limit])
