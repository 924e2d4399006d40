"""Errors of releases.

LorekeeperError
└── ReleaseError
    ├── TargetNotServable
    ├── RevisionChanged
    ├── NothingToRollBackTo
    ├── ReleaseActive
    ├── WrongReleaseState
    ├── ApprovalsMissing
    ├── AliasIsSplit
    └── ReleaseNeeded
"""

from registry.errors import LorekeeperError


class ReleaseError(LorekeeperError):
    pass


class TargetNotServable(ReleaseError):
    """The version is not approved, not signed, or withdrawn."""

    code = "target_not_servable"


class RevisionChanged(ReleaseError):
    """The caller expected another revision of the alias: somebody moved it meanwhile."""

    code = "revision_changed"


class NothingToRollBackTo(ReleaseError):
    code = "nothing_to_roll_back_to"


class ReleaseActive(ReleaseError):
    """A release of the alias is under way: until it is over nothing else moves or splits the alias."""

    code = "release_active"


class WrongReleaseState(ReleaseError):
    """The release is too far, not far enough, or over, for what was asked."""

    code = "wrong_release_state"


class ApprovalsMissing(ReleaseError):
    """The release's plan asks for more approvals than it has."""

    code = "approvals_missing"


class AliasIsSplit(ReleaseError):
    """Somebody splits the alias by hand, which a release would have to undo."""

    code = "alias_is_split"


class ReleaseNeeded(ReleaseError):
    """The alias is protected: it is moved by releases and rollbacks alone."""

    code = "release_needed"
