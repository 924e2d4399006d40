"""Reading signed checkpoints from files, as they lie in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.errors import SignatureRefused
from client.i18n import _
from registry.signing.checkpoints import AuditCheckpoint, open_checkpoint
from registry.signing.errors import KeyRevoked, SigningError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from registry.signing.keys import KeyRing

_LARGEST = 1 << 20
_HIDDEN = "."


def read_checkpoints(places: Iterable[Path], keys: KeyRing, *, chain: str | None = None) -> tuple[AuditCheckpoint, ...]:
    """Return what the checkpoints say that lie in these files, and in the files of these folders.

    Those by a key that was revoked count for nothing, and are passed over.

    Raises:
        SignatureRefused: one isn't signed by a trusted key, speaks of another chain, or contradicts another one.

    """
    found: dict[int, AuditCheckpoint] = {}
    for path in _files(places):
        checkpoint = _read(path, keys)
        if checkpoint is None:
            continue
        chain = chain or checkpoint.chain
        if checkpoint.chain != chain:
            message = _("{path} is a checkpoint of the log of {found}, not of {chain}.")
            raise SignatureRefused(message.format(path=path, found=checkpoint.chain, chain=chain))
        other = found.setdefault(checkpoint.seq, checkpoint)
        if (other.head, other.first) != (checkpoint.head, checkpoint.first):
            message = _("{path} contradicts another signed checkpoint of record {seq}: two logs were signed.")
            raise SignatureRefused(message.format(path=path, seq=checkpoint.seq))
    return tuple(found[seq] for seq in sorted(found))


def _files(places: Iterable[Path]) -> Iterator[Path]:
    for place in places:
        if place.is_dir():
            inside = (path for path in place.rglob("*") if path.is_file() and not path.name.startswith(_HIDDEN))
            yield from sorted(inside)
        else:
            yield place


def _read(path: Path, keys: KeyRing) -> AuditCheckpoint | None:
    with path.open("rb") as stream:
        text = stream.read(_LARGEST).decode("utf-8", errors="replace")
    try:
        return open_checkpoint(text, keys)
    except KeyRevoked:
        return None
    except SigningError as error:
        message = _("{path} isn't a checkpoint to be trusted: {reason}.")
        raise SignatureRefused(message.format(path=path, reason=error)) from error
