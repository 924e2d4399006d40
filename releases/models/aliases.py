from django.db import models

from registry.models import Adapter, Tenant, Version
from releases.states import MoveKind

_KNOWN_KINDS = [kind.value for kind in MoveKind]


class Alias(models.Model):
    """A stable name in a tenant and the one version it stands for now. Rules: ``releases/sql/invariants.sql``."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="aliases")
    # As long as any name of an adapter with ".default" behind it.
    name = models.CharField(max_length=71)
    adapter = models.ForeignKey(Adapter, on_delete=models.PROTECT, related_name="aliases")
    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="aliases")
    revision = models.PositiveIntegerField(default=1)
    moved_by = models.CharField(max_length=8, default=MoveKind.SET.value)
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="alias_name_once"),
            models.CheckConstraint(condition=models.Q(moved_by__in=_KNOWN_KINDS), name="alias_moved_by_known"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant}/{self.name}"


class AliasRevision(models.Model):
    """One row of an alias's history; never changed. The actor's name is copied: people go, history stays."""

    alias = models.ForeignKey(Alias, on_delete=models.PROTECT, related_name="revisions")
    number = models.PositiveIntegerField()
    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="alias_revisions")
    previous_version = models.ForeignKey(Version, on_delete=models.PROTECT, null=True, related_name="+")
    kind = models.CharField(max_length=8)
    actor_kind = models.CharField(max_length=12)
    actor_id = models.CharField(max_length=254)
    actor_name = models.CharField(max_length=200)
    reason = models.TextField(blank=True, default="")
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["alias", "number"], name="alias_revision_once"),
            models.CheckConstraint(condition=models.Q(kind__in=_KNOWN_KINDS), name="alias_revision_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.alias}#{self.number}"
