"""``python -m bench.audit``: the cost of an append, alone and inside a change; eight writers of one chain; checking it.

Postgres writes to the disk as in production, and every statement runs as the role of the application. The last line
says ok or short, and so does the exit status: short if a chain has a gap or doesn't verify, or if an append takes a
change longer than the bound (median).
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from typing import TYPE_CHECKING

from bench.audit.world import stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from client.audit import ChainVerdict

WRITERS, APPENDS = 8, 100
ROUNDS = 300
LONG_CHAIN = 20_000
BOUND_MS = 5.0


def main() -> int:
    with stage():
        cost = _cost_inside_a_change()
        _cost_in_a_long_chain()
        sound = _many_writers(["bench"] * WRITERS, "one chain")
        sound &= _many_writers([f"bench-{number}" for number in range(WRITERS)], "a chain for each")
        sound &= _checking()
    verdict = "ok" if sound and cost <= BOUND_MS else "short"
    _say(f"bench-audit: {verdict} an append adds {cost:.2f} ms to a change (bound {BOUND_MS:.0f} ms)")
    return 0 if verdict == "ok" else 1


def _cost_inside_a_change() -> float:
    """What an append adds to a transaction that writes a row and commits anyway, median in milliseconds."""
    bare, audited = [], []
    for number in range(ROUNDS):
        bare.append(_timed(lambda number=number: _change(f"bare {number}", audited=False)))  # type: ignore[misc]
        audited.append(_timed(lambda number=number: _change(f"told {number}", audited=True)))  # type: ignore[misc]
    _say(f"a change with one row: {_spread(bare)}; with its audit record: {_spread(audited)}")
    return statistics.median(audited) - statistics.median(bare)


def _cost_in_a_long_chain() -> None:
    """Appends without a commit between them, at the beginning of a chain and far along it."""
    from django.db import transaction  # noqa: PLC0415  Django was set up meanwhile

    with transaction.atomic():
        took = [_timed(lambda: _append("long")) for _ in range(LONG_CHAIN)]
    _say(
        f"the statement alone: records 1 to 1000 {_spread(took[:1000])}; "
        f"records {LONG_CHAIN - 999} to {LONG_CHAIN} {_spread(took[-1000:])}"
    )


def _many_writers(chains: list[str], what: str) -> bool:
    barrier = threading.Barrier(len(chains) + 1)
    writers = [threading.Thread(target=_write, args=(chain, barrier)) for chain in chains]
    for writer in writers:
        writer.start()
    barrier.wait()
    began = time.perf_counter()
    for writer in writers:
        writer.join()
    took = time.perf_counter() - began
    count = len(chains) * APPENDS
    verdicts = [_verdict(chain) for chain in sorted(set(chains))]
    sound = all(verdict.intact for verdict in verdicts) and sum(verdict.records for verdict in verdicts) == count
    _say(
        f"{len(chains)} writers, {APPENDS} records each, {what}: {count / took:.0f} records/s, "
        f"{'contiguous' if sound else 'NOT CONTIGUOUS'}"
    )
    return sound


def _write(chain: str, barrier: threading.Barrier) -> None:
    from django.db import connections  # noqa: PLC0415

    _append("warm-up")
    barrier.wait()
    for _ in range(APPENDS):
        _append(chain)
    connections.close_all()


def _checking() -> bool:
    """A signed checkpoint of the long chain, and the chain checked against it as an auditor would."""
    from registry.actors import system_actor  # noqa: PLC0415
    from registry.services.audit.checkpoints import make_checkpoint  # noqa: PLC0415

    began = time.perf_counter()
    made = make_checkpoint(actor=system_actor("bench"), chain="long")
    signing = time.perf_counter() - began
    began = time.perf_counter()
    verdict = _verdict("long")
    checking = time.perf_counter() - began
    _say(f"a checkpoint of {LONG_CHAIN} records: {signing * 1000:.0f} ms; reading and checking them: {checking:.2f} s")
    return verdict.intact and made is not None and verdict.head == made.head


def _change(name: str, *, audited: bool) -> None:
    from django.db import transaction  # noqa: PLC0415

    from registry.models import Tenant  # noqa: PLC0415

    with transaction.atomic():
        Tenant.objects.create(name=name, title="bench")
        if audited:
            _append("changes")


def _append(chain: str) -> None:
    from registry.actors import system_actor  # noqa: PLC0415
    from registry.audit import append_record  # noqa: PLC0415

    append_record(
        actor=system_actor("bench"),
        chain=chain,
        action="tenant:thing:do",
        object_={"kind": "thing", "id": "1", "name": "a thing of some length"},
        before={"state": "candidate"},
        after={"state": "approved", "root_digest": "0" * 64},
    )


def _verdict(chain: str) -> ChainVerdict:
    from client.audit import verify_export  # noqa: PLC0415
    from registry.models import AuditRecord  # noqa: PLC0415
    from registry.services.audit.exports import audit_document  # noqa: PLC0415

    records = AuditRecord.objects.filter(chain=chain).order_by("seq").iterator(chunk_size=500)
    return verify_export((json.dumps(audit_document(record)) for record in records), chain=chain)


def _timed(act: Callable[[], None]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def _spread(milliseconds: Iterable[float]) -> str:
    ordered = sorted(milliseconds)
    return f"median {statistics.median(ordered):.2f} ms, p95 {ordered[int(len(ordered) * 0.95)]:.2f} ms"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
