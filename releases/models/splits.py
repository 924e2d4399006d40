from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from registry.models import Version
from releases.models.aliases import Alias

WHOLE = 10_000


class AliasSplit(models.Model):
    """Which requests of an alias a candidate answers, or a shadow copies, in basis points (10,000: all).

    What they mean for a request is told at ``gateway.routing.snapshot.Split``. Rules: ``releases/sql/splits.sql``.
    """

    alias = models.OneToOneField(Alias, on_delete=models.PROTECT, related_name="split")
    candidate = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="+")
    basis_points = models.PositiveIntegerField(default=0)
    # Decides which keys are in; kept while the candidate is the same, so that a growing share only ever adds keys.
    salt = models.CharField(max_length=64)
    allow = ArrayField(models.CharField(max_length=63), default=list)
    deny = ArrayField(models.CharField(max_length=63), default=list)
    shadow = models.ForeignKey(Version, on_delete=models.PROTECT, null=True, related_name="+")
    shadow_basis_points = models.PositiveIntegerField(default=0)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(basis_points__lte=WHOLE, shadow_basis_points__lte=WHOLE), name="alias_split_shares"
            ),
            models.CheckConstraint(
                condition=Q(shadow__isnull=False) | Q(shadow_basis_points=0), name="alias_split_shadow_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.alias}: {self.basis_points} of {WHOLE} to {self.candidate}"
