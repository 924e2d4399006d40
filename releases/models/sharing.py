from django.contrib.postgres.fields import ArrayField
from django.db import models

from registry.models import Tenant
from releases.models.aliases import Alias


class AliasProtection(models.Model):
    """Who may move an alias, and how. An alias without a row isn't protected.

    ``movers``: people (by e-mail) who alone may move it, release it or split it; empty: everybody whose role may.
    ``needs_release``: only a promoted release moves it, or a rollback.
    """

    alias = models.OneToOneField(Alias, on_delete=models.PROTECT, primary_key=True, related_name="protection")
    movers = ArrayField(models.CharField(max_length=254), default=list)
    needs_release = models.BooleanField(default=True)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"protection of {self.alias}"


class AliasGrant(models.Model):
    """An alias of one tenant that another may call, by ``name``, which is free of the other's own aliases."""

    alias = models.ForeignKey(Alias, on_delete=models.PROTECT, related_name="grants")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=63)
    granted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["alias", "tenant"], name="alias_grant_once"),
            models.UniqueConstraint(fields=["tenant", "name"], name="alias_grant_name_once"),
        ]

    def __str__(self) -> str:
        return f"{self.alias} for {self.tenant} as {self.name}"
