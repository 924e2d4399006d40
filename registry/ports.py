"""What the registry needs from the apps above it. The app that can do it supplies it when it starts."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from registry.actors import Actor


class AliasTargets(Protocol):
    def __call__(self, *, adapter_id: int) -> dict[str, UUID]:
        """The version each alias of the adapter points at now, by alias name."""
        ...


class AliasedSince(Protocol):
    def __call__(self, *, version_ids: Iterable[UUID], since: datetime) -> frozenset[UUID]:
        """Those of the versions that an alias pointed at for some time after ``since`` (or does now)."""
        ...


class RollbackTargets(Protocol):
    def __call__(self, *, adapter_id: int) -> frozenset[UUID]:
        """The versions that the adapter's aliases would go back to."""
        ...


@dataclass(frozen=True, slots=True)
class Holder:
    """A node that still has a version: what it said last, not what it was told."""

    node: str
    observed: str
    desired: str


class VersionApproved(Protocol):
    def __call__(self, *, actor: Actor, version_id: UUID) -> None:
        """The version has just become approved, in the transaction that goes on, by ``actor``."""
        ...


class HoldUsers(Protocol):
    def __call__(self, *, version_id: UUID) -> frozenset[int]:
        """Before a version is locked to be withdrawn: lock what uses it; returns what was found, for ``held``."""
        ...


class VersionWithdrawn(Protocol):
    def __call__(self, *, actor: Actor, version_id: UUID, reason: str, held: frozenset[int]) -> None:
        """The version was yanked or revoked in this transaction: let nothing be released to it.

        Raises ``StaleState`` if by now more uses it than is ``held``.
        """
        ...


class HoldersOf(Protocol):
    def __call__(self, *, version_id: UUID) -> tuple[Holder, ...]:
        """The nodes that reported the version as anything but absent, and did not report it gone since."""
        ...


class PlacedVersions(Protocol):
    def __call__(self, *, version_ids: Iterable[UUID]) -> frozenset[UUID]:
        """Those of the versions that a node has, or was told to get."""
        ...


def no_aliases(*, adapter_id: int) -> dict[str, UUID]:  # noqa: ARG001  a null twin
    """The null twin: no app above gives aliases."""
    return {}


def never_aliased(*, version_ids: Iterable[UUID], since: datetime) -> frozenset[UUID]:  # noqa: ARG001  a null twin
    """The null twin: no app above gives aliases."""
    return frozenset()


def no_way_back(*, adapter_id: int) -> frozenset[UUID]:  # noqa: ARG001  a null twin
    """The null twin: no app above gives aliases."""
    return frozenset()


def used_nowhere(*, version_id: UUID) -> frozenset[int]:  # noqa: ARG001  a null twin
    """The null twin: no app above gives aliases."""
    return frozenset()


def end_nothing(*, actor: Actor, version_id: UUID, reason: str, held: frozenset[int]) -> None:
    """The null twin: no app above releases versions."""


def held_nowhere(*, version_id: UUID) -> tuple[Holder, ...]:  # noqa: ARG001  a null twin
    """The null twin: no app above places versions."""
    return ()


def placed_nowhere(*, version_ids: Iterable[UUID]) -> frozenset[UUID]:  # noqa: ARG001  a null twin
    """The null twin: no app above places versions."""
    return frozenset()


def begin_nothing(*, actor: Actor, version_id: UUID) -> None:
    """The null twin: no app above makes anything of an approved version."""


@dataclass(slots=True)
class Ports:
    """The one holder of what was supplied."""

    alias_targets: AliasTargets = no_aliases
    aliased_since: AliasedSince = never_aliased
    rollback_targets: RollbackTargets = no_way_back
    holders_of: HoldersOf = held_nowhere
    placed_versions: PlacedVersions = placed_nowhere
    hold_users: HoldUsers = used_nowhere
    version_withdrawn: VersionWithdrawn = end_nothing
    version_approved: VersionApproved = begin_nothing


PORTS = Ports()
