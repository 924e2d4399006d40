"""Errors of cache control.

LorekeeperError
└── CacheControlError
    ├── NodeNotRestartable
    ├── NodeRefused
    ├── NoCapacity
    ├── PolicyNotPossible (also a Conflict of the registry)
    └── VersionNotServable (also a Conflict of the registry)
"""

from registry.errors import Conflict, LorekeeperError


class CacheControlError(LorekeeperError):
    pass


class NodeNotRestartable(CacheControlError):
    """Nobody can restart the node's engine from here now."""

    code = "node_not_restartable"


class NodeRefused(CacheControlError):
    """The node can't serve this version at all: another base revision, or too high a rank."""

    code = "node_refused"


class NoCapacity(CacheControlError):
    """Every place on the node is taken by versions that may not be evicted now."""

    code = "no_capacity"
    retryable = True


class PolicyNotPossible(CacheControlError, Conflict):
    """The nodes there are can't give what a cache policy asks for."""

    code = "policy_not_possible"


class VersionNotServable(CacheControlError, Conflict):
    """The version is not approved, not signed, or revoked."""

    code = "version_not_servable"
