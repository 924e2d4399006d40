"""What can go wrong with an object store.

StoreError
├── StoreUnavailable       no answer, a full disk, or a broken connection (retryable)
├── StoreRefused           the store's configuration is wrong: credentials, bucket, permissions
├── BadKey                 not a key under which artifacts lie, or it names another digest
├── StoreDigestMismatch    the bytes are not those of the digest; nothing was kept
├── StoreSizeMismatch      more or fewer bytes than announced; nothing was kept
├── ObjectMissing          nothing lies under the key
└── TicketError            a presigned address of the folder store that doesn't hold
    └── TicketExpired
"""

from typing import ClassVar

from registry.errors import LorekeeperError


class StoreError(LorekeeperError):
    code: ClassVar[str] = "store_error"


class StoreUnavailable(StoreError):
    code = "store_unavailable"
    retryable = True


class StoreRefused(StoreError):
    code = "store_refused"


class BadKey(StoreError):
    code = "bad_key"


class StoreDigestMismatch(StoreError):
    code = "store_digest_mismatch"


class StoreSizeMismatch(StoreError):
    code = "store_size_mismatch"


class ObjectMissing(StoreError):
    code = "object_missing"

    def __init__(self, key: str) -> None:
        super().__init__(f"nothing is stored under {key!a}", field="key")
        self.key = key


class TicketError(StoreError):
    code = "bad_ticket"


class TicketExpired(TicketError):
    code = "ticket_expired"
