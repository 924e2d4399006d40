from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from registry.models import Version
from releases.models.aliases import Alias, AliasRevision
from releases.models.releases import Release


class AliasInterval(models.Model):
    """What an alias stood for from ``valid_from`` until ``valid_to`` (None: until now): its target and its split.

    Written by the database alone, at the commit of each change (``releases/sql/intervals.sql``). The intervals of an
    alias follow on each other without gaps and never overlap, whatever the clock does. The fields of the split mean
    what they mean in ``AliasSplit``; without one there is no candidate, and they are empty. ``release`` is the one that
    the split, or the move to this revision, was part of.
    """

    alias = models.ForeignKey(Alias, on_delete=models.PROTECT, related_name="intervals")
    revision = models.ForeignKey(AliasRevision, on_delete=models.PROTECT, related_name="intervals")
    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="+")
    valid_from = models.DateTimeField()
    valid_to = models.DateTimeField(null=True)
    candidate = models.ForeignKey(Version, on_delete=models.PROTECT, null=True, related_name="+")
    basis_points = models.PositiveIntegerField(default=0)
    salt = models.CharField(max_length=64, blank=True, default="")
    allow = ArrayField(models.CharField(max_length=63), default=list)
    deny = ArrayField(models.CharField(max_length=63), default=list)
    shadow = models.ForeignKey(Version, on_delete=models.PROTECT, null=True, related_name="+")
    shadow_basis_points = models.PositiveIntegerField(default=0)
    release = models.ForeignKey(Release, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["alias", "valid_from"], name="alias_interval_once"),
            models.UniqueConstraint(
                fields=["alias"], condition=Q(valid_to__isnull=True), name="alias_interval_one_open"
            ),
            models.CheckConstraint(
                condition=Q(valid_to__isnull=True) | Q(valid_to__gt=F("valid_from")), name="alias_interval_lasts"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.alias} from {self.valid_from} until {self.valid_to or 'now'}"
