from releases.models.aliases import Alias, AliasRevision

__all__ = ["Alias", "AliasRevision"]
