"""Errors of releases.

LorekeeperError
└── ReleaseError
    ├── TargetNotServable
    ├── RevisionChanged
    └── NothingToRollBackTo
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
