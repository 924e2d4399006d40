from releases.models.aliases import Alias, AliasRevision
from releases.models.intervals import AliasInterval
from releases.models.releases import Release, ReleaseApproval, ReleaseStep
from releases.models.rollbacks import Rollback
from releases.models.sharing import AliasGrant, AliasProtection
from releases.models.splits import AliasSplit
from releases.models.templates import ReleaseTemplate

__all__ = [
    "Alias",
    "AliasGrant",
    "AliasInterval",
    "AliasProtection",
    "AliasRevision",
    "AliasSplit",
    "Release",
    "ReleaseApproval",
    "ReleaseStep",
    "ReleaseTemplate",
    "Rollback",
]
