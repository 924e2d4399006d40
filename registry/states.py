"""States of what the registry keeps, and the allowed moves between them (DESIGN: state machines)."""

from enum import StrEnum
from typing import Final


class VersionState(StrEnum):
    """Life of a version: uploading → validating → rejected | candidate → approved → yanked → revoked."""

    UPLOADING = "uploading"
    VALIDATING = "validating"
    REJECTED = "rejected"
    CANDIDATE = "candidate"
    APPROVED = "approved"
    YANKED = "yanked"
    REVOKED = "revoked"


# An upload that expires or is declined ends as rejected, so that its name stays taken for ever.
VERSION_MOVES: Final[frozenset[tuple[VersionState, VersionState]]] = frozenset(
    {
        (VersionState.UPLOADING, VersionState.VALIDATING),
        (VersionState.UPLOADING, VersionState.REJECTED),
        (VersionState.VALIDATING, VersionState.REJECTED),
        (VersionState.VALIDATING, VersionState.CANDIDATE),
        (VersionState.CANDIDATE, VersionState.APPROVED),
        (VersionState.CANDIDATE, VersionState.REJECTED),
        (VersionState.CANDIDATE, VersionState.REVOKED),
        (VersionState.APPROVED, VersionState.YANKED),
        (VersionState.APPROVED, VersionState.REVOKED),
        (VersionState.YANKED, VersionState.REVOKED),
    }
)

SIGNED_STATES: Final = frozenset({VersionState.APPROVED, VersionState.YANKED, VersionState.REVOKED})


class Role(StrEnum):
    """What a person may be in one tenant; a person may hold several."""

    VIEWER = "viewer"
    UPLOADER = "uploader"
    REVIEWER = "reviewer"
    RELEASE_MANAGER = "release_manager"
    OPERATOR = "operator"
    AUDITOR = "auditor"


class Scope(StrEnum):
    """What a token may be used for; a token never grants more than its owner's roles."""

    READ = "read"
    UPLOAD = "upload"
    APPROVE = "approve"
    RELEASE = "release"
    OPERATE = "operate"
    AUDIT = "audit"
    ADMIN = "admin"
    INFER = "infer"
    DEMAND = "demand"
    NODE = "node"
    METRICS = "metrics"


class TokenKind(StrEnum):
    """Whom a token speaks for."""

    PERSON = "person"
    APPLICATION = "application"
    GATEWAY = "gateway"
    NODE = "node"
    MONITOR = "monitor"


class Decision(StrEnum):
    """What a reviewer said of a version."""

    APPROVED = "approved"
    DECLINED = "declined"


class DeliveryState(StrEnum):
    """Life of a webhook's delivery: pending → delivered | parked.

    Parked: it has not got through within a day, or what its endpoint missed was skipped.
    """

    PENDING = "pending"
    DELIVERED = "delivered"
    PARKED = "parked"


DELIVERY_MOVES: Final[frozenset[tuple[DeliveryState, DeliveryState]]] = frozenset(
    {(DeliveryState.PENDING, DeliveryState.DELIVERED), (DeliveryState.PENDING, DeliveryState.PARKED)}
)
