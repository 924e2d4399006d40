"""What the registry needs from the apps above it. The app that can do it supplies it when it starts."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PointedAlias:
    """An alias and what it points at now.

    Attributes:
        adapter_id: the adapter whose version that is.
        version: the version's name.
        revision: counts the alias's moves.
        shared_with: the tenants that call it beside its own, by name.

    """

    name: str
    adapter_id: int
    version_id: UUID
    version: str
    revision: int
    moved_at: datetime
    shared_with: tuple[str, ...] = ()


class AliasesOf(Protocol):
    def __call__(self, *, adapter_ids: Iterable[int]) -> tuple[PointedAlias, ...]:
        """The aliases that point at versions of these adapters now, by name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """An alias that has something to do with a version.

    Attributes:
        kind: ``alias``: it points at the version; ``canary``, ``shadow``: a share of its requests is answered by the
            version, or mirrored to it; ``stable``, ``candidate``: a release of it that isn't over goes from the
            version, or to it.
        alias: its name.
        percent: the share, of ``canary`` and ``shadow``.
        release: the release's number, of ``stable`` and ``candidate``.
        state: the release's.
        shared_with: the tenants that call the alias beside its own, by name.

    """

    kind: Literal["alias", "canary", "shadow", "stable", "candidate"]
    alias: str
    percent: float = 0.0
    release: int = 0
    state: str = ""
    shared_with: tuple[str, ...] = ()


class UsesOf(Protocol):
    def __call__(self, *, version_id: UUID) -> tuple[Use, ...]:
        """What aliases do with the version now: first those that point at it, then splits, then releases."""
        ...


class PlacedVersions(Protocol):
    def __call__(self, *, version_ids: Iterable[UUID]) -> frozenset[UUID]:
        """Those of the versions that a node has, or was told to get."""
        ...


def no_aliases(*, adapter_id: int) -> dict[str, UUID]:  # noqa: ARG001  a null twin
    """The null twin: no app above gives aliases."""
    return {}


def pointed_at_by_none(*, adapter_ids: Iterable[int]) -> tuple[PointedAlias, ...]:  # noqa: ARG001  a null twin
    """The null twin: no app above gives aliases."""
    return ()


def used_by_none(*, version_id: UUID) -> tuple[Use, ...]:  # noqa: ARG001  a null twin
    """The null twin: no app above gives aliases."""
    return ()


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
    aliases_of: AliasesOf = pointed_at_by_none
    uses_of: UsesOf = used_by_none
    aliased_since: AliasedSince = never_aliased
    rollback_targets: RollbackTargets = no_way_back
    holders_of: HoldersOf = held_nowhere
    placed_versions: PlacedVersions = placed_nowhere
    hold_users: HoldUsers = used_nowhere
    version_withdrawn: VersionWithdrawn = end_nothing
    version_approved: VersionApproved = begin_nothing


PORTS = Ports()
