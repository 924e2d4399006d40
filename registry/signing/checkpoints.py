"""Signed checkpoints of an audit chain: at this time it had so many records, and this was the hash of the last one.

A hash chain alone can't show that its end was cut off or that all of it was written anew. Whoever holds a checkpoint
can: the hash of record `seq` has to be `head`, for ever.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from registry.signing.dsse import open_statement, seal_statement, signer_of
from registry.signing.errors import BadSignature
from registry.signing.keys import KeyRing
from registry.signing.ports import Signer

CHECKPOINT_PREDICATE = "https://lorekeeper.dev/attestations/audit-checkpoint/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCheckpoint:
    """What a checkpoint says.

    Attributes:
        chain: a tenant's name, or `platform`.
        seq: the number of the last record, from 1.
        head: the hash of that record (hex); it covers all before it.
        first: the hash of record 1 (hex): tells a log begun anew from one whose end was cut off.
        previous: SHA-256 (hex) of the text of the checkpoint before, empty for the first.
        signed_at, key_id: when (ISO 8601 with time zone) and by which key; empty before it is signed.

    """

    chain: str
    seq: int
    head: str
    first: str
    previous: str = ""
    signed_at: str = ""
    key_id: str = ""


def sign_checkpoint(signer: Signer, checkpoint: AuditCheckpoint) -> str:
    """Return the text of the bundle; `registry.signing.dsse` says in which form."""
    return seal_statement(
        signer,
        predicate_type=CHECKPOINT_PREDICATE,
        subject=f"audit/{checkpoint.chain}",
        digest=checkpoint.head,
        predicate={
            "chain": checkpoint.chain,
            "seq": checkpoint.seq,
            "first": checkpoint.first,
            "previous": checkpoint.previous,
        },
    )


def open_checkpoint(text: str, keys: KeyRing) -> AuditCheckpoint:
    """Check a bundle and return what it says.

    Raises:
        BadSignature, UnknownKey: see `registry.signing.errors`.

    """
    head, predicate = open_statement(text, keys, predicate_type=CHECKPOINT_PREDICATE)
    seq = predicate.get("seq")
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 1:
        raise BadSignature("the signed checkpoint has no number of a record")
    return AuditCheckpoint(
        chain=_text(predicate, "chain"),
        seq=seq,
        head=head,
        first=_text(predicate, "first"),
        previous=_text(predicate, "previous"),
        signed_at=_text(predicate, "signed_at"),
        key_id=signer_of(text)[0],
    )


def digest_of_checkpoint(text: str) -> str:
    """SHA-256 (hex) of a checkpoint's text, by which the next one names it."""
    return hashlib.sha256(text.encode()).hexdigest()


def _text(predicate: dict[str, Any], name: str) -> str:
    value = predicate.get(name)
    if not isinstance(value, str):
        raise BadSignature(f"the signed checkpoint has no '{name}'")
    return value
