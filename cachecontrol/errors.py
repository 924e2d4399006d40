"""Errors of cache control.

LorekeeperError
└── CacheControlError
    ├── NodeRefused
    ├── NoCapacity
    └── VersionNotServable (also a Conflict of the registry)
"""

from registry.errors import Conflict, LorekeeperError


class CacheControlError(LorekeeperError):
    pass


class NodeRefused(CacheControlError):
    """The node can't serve this version at all: another base revision, or too high a rank."""

    code = "node_refused"


class NoCapacity(CacheControlError):
    """Every place on the node is taken by versions that may not be evicted now."""

    code = "no_capacity"
    retryable = True


class VersionNotServable(CacheControlError, Conflict):
    """The version is not approved, not signed, or revoked."""

    code = "version_not_servable"
