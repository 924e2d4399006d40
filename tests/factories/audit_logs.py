"""Well-formed audit logs without a database, as an export has them."""

import hashlib
import json
from typing import Any

from registry.signing.checkpoints import AuditCheckpoint

Record = dict[str, Any]
GENESIS = "0" * 64


def make_record(seq: int, prev: str, *, chain: str = "acme", form: int = 2, **facts: Any) -> Record:
    """Record ``seq`` behind the one with the hash ``prev``; ``facts`` replace what it says."""
    said: Record = {
        "v": form,
        "chain": chain,
        "seq": seq,
        "at": f"2026-07-04T10:{seq // 60 % 60:02d}:{seq % 60:02d}.000000Z",
        "actor": {"kind": "person", "id": "ada@acme.test", "name": "Ada"},
        "action": "tenant:member:add",
        "object": {"kind": "person", "id": "7", "name": "Grace\u2028"},
        "before": None,
        "after": {"role": "viewer", "count": 1},
        "reason": "",
        "request_id": "r1",
        "source": "10.0.0.1",
        **({"how": "api"} if form > 1 else {}),
        **facts,
    }
    payload = json.dumps(said, sort_keys=True, separators=(",", ":"))
    shown = {"how": "", **{name: value for name, value in said.items() if name != "v"}}
    return {**shown, "prev_hash": prev, "hash": hash_of(prev, payload), "payload": payload}


def hash_of(prev: str, payload: str) -> str:
    return hashlib.sha256(f"{prev}\n{payload}".encode()).hexdigest()


def make_log(length: int, *, start: Any = (), **facts: Any) -> list[Record]:
    """A log of so many records, going on behind those of ``start``."""
    made: list[Record] = list(start)
    while len(made) < length:
        made.append(make_record(len(made) + 1, made[-1]["hash"] if made else GENESIS, **facts))
    return made


def checkpoint_at(log: list[Record], seq: int) -> AuditCheckpoint:
    """What a checkpoint of record ``seq`` says, signed at noon."""
    return AuditCheckpoint(
        chain=log[0]["chain"],
        seq=seq,
        head=log[seq - 1]["hash"],
        first=log[0]["hash"],
        signed_at="2026-07-04T12:00:00+00:00",
    )
