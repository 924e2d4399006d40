from django.db import models

from registry.models import Tenant, Version


class VersionHeat(models.Model):
    """How much one version is asked for: ``rate`` is an exponentially decayed count of requests as of ``as_of``.

    Kept for every version that was ever asked for, resident or not.
    """

    version = models.OneToOneField(Version, on_delete=models.PROTECT, primary_key=True, related_name="heat")
    rate = models.FloatField(default=0)
    as_of = models.DateTimeField()
    hits = models.BigIntegerField(default=0)
    last_used_at = models.DateTimeField(null=True)
    # The rate that is expected for the next while, where the policy has that worked out; requests per hour.
    predicted_per_h = models.FloatField(default=0)

    def __str__(self) -> str:
        return f"{self.version}: {self.rate:.2f}"


class TenantHeat(models.Model):
    """The same for all versions of a tenant together."""

    tenant = models.OneToOneField(Tenant, on_delete=models.PROTECT, primary_key=True, related_name="heat")
    rate = models.FloatField(default=0)
    as_of = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.tenant}: {self.rate:.2f}"


class HeatCursor(models.Model):
    """How far the request records were counted: those of every transaction below ``counted_below`` (one row).

    A transaction's number and not a record's id: ids are given out before a commit, and batches of several gateways
    commit in any order.
    """

    counted_below = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="heat_cursor_is_one_row")]

    def __str__(self) -> str:
        return f"below {self.counted_below}"
