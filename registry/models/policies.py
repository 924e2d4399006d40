from django.contrib.postgres.fields import ArrayField
from django.db import models

from registry.models.adapters import Adapter
from registry.models.tenants import Tenant
from registry.states import Role


def reviewers_alone() -> list[str]:
    return [Role.REVIEWER.value]


class ApprovalPolicy(models.Model):
    """Whose approvals, and how many, a version of the tenant needs. A tenant without a row has the defaults.

    ``only_people`` and ``required_people`` hold e-mail addresses in lower case; an empty ``only_people`` means
    everybody who has one of ``roles``. ``validity_days`` None means that an approval does not expire.
    """

    tenant = models.OneToOneField(Tenant, on_delete=models.PROTECT, related_name="approval_policy")
    required = models.PositiveSmallIntegerField(default=1)
    roles = ArrayField(models.CharField(max_length=20), default=reviewers_alone)
    only_people = ArrayField(models.EmailField(max_length=254), default=list, blank=True)
    required_people = ArrayField(models.EmailField(max_length=254), default=list, blank=True)
    validity_days = models.PositiveSmallIntegerField(null=True)
    updated_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(required__gte=1), name="approval_policy_needs_somebody"),
            models.CheckConstraint(condition=~models.Q(roles=[]), name="approval_policy_has_roles"),
            models.CheckConstraint(
                condition=models.Q(validity_days__isnull=True) | models.Q(validity_days__gte=1),
                name="approval_policy_validity_positive",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenant}: {self.required}"


class RetentionPolicy(models.Model):
    """How long the bytes of an adapter's versions are kept when nothing refers to them. No row: for ever.

    ``automatic`` lets the sweep remove bytes; it can be set only after what ``keep_days`` means has been looked at and
    applied once by hand (``applied_at``).
    """

    adapter = models.OneToOneField(Adapter, on_delete=models.PROTECT, related_name="retention_policy")
    keep_days = models.PositiveSmallIntegerField()
    automatic = models.BooleanField(default=False)
    applied_at = models.DateTimeField(null=True)
    swept_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(keep_days__gte=1), name="retention_keeps_a_day"),
            models.CheckConstraint(
                condition=models.Q(automatic=False) | models.Q(applied_at__isnull=False),
                name="retention_automatic_after_a_first_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.adapter}: {self.keep_days} days"
