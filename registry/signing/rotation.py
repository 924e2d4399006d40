"""Which of the configured keys signs now: a pure decision over what was published about them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

# A key goes on counting for so long after another takes over: what began to be signed before the change ends after it,
# on machines whose clocks differ.
HANDOVER: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class PublishedKey:
    """What is known of a key: it signs from `valid_from` until `valid_to` (None: no end yet), unless revoked."""

    key_id: str
    valid_from: datetime
    valid_to: datetime | None = None
    revoked: bool = False

    def signs_at(self, now: datetime) -> bool:
        return not self.revoked and self.valid_from <= now and (self.valid_to is None or now < self.valid_to)


def choose_key(configured: Sequence[str], published: Iterable[PublishedKey], *, now: datetime) -> str | None:
    """The id of the key that signs at `now`, or None if none may.

    That is the one whose time began last. Only if no published key signs, one that nobody knows yet begins: the first
    key of a new installation is published by being used, and any later one takes over by a rotation.
    """
    known = {key.key_id: key for key in published}
    signing = [known[key_id] for key_id in configured if key_id in known and known[key_id].signs_at(now)]
    if signing:
        return max(signing, key=lambda key: key.valid_from).key_id
    return next((key_id for key_id in configured if key_id not in known), None)
