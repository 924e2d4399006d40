from django.contrib.postgres.fields import ArrayField
from django.db import models

from registry.models import Tenant


class TenantRules(models.Model):
    """What a tenant may ask of the gateway; a tenant without a row has the defaults. None: no limit.

    The limits are of all processes of one gateway together; ``gpu_ms_per_minute`` is time in engines. ``base_models``
    are the base models that it may ask for by their own names. ``allows_shadow``: its requests may be mirrored to a
    candidate.
    """

    tenant = models.OneToOneField(Tenant, on_delete=models.PROTECT, related_name="serving_rules")
    requests_per_minute = models.PositiveIntegerField(null=True)
    tokens_per_minute = models.PositiveIntegerField(null=True)
    concurrent_requests = models.PositiveIntegerField(null=True)
    gpu_ms_per_minute = models.PositiveIntegerField(null=True)
    base_models = ArrayField(models.CharField(max_length=63), default=list, blank=True)
    allows_shadow = models.BooleanField(default=True)
    updated_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(requests_per_minute__isnull=True) | models.Q(requests_per_minute__gte=1),
                name="tenant_rules_requests_positive",
            ),
            models.CheckConstraint(
                condition=models.Q(tokens_per_minute__isnull=True) | models.Q(tokens_per_minute__gte=1),
                name="tenant_rules_tokens_positive",
            ),
            models.CheckConstraint(
                condition=models.Q(concurrent_requests__isnull=True) | models.Q(concurrent_requests__gte=1),
                name="tenant_rules_concurrent_positive",
            ),
            models.CheckConstraint(
                condition=models.Q(gpu_ms_per_minute__isnull=True) | models.Q(gpu_ms_per_minute__gte=1),
                name="tenant_rules_gpu_positive",
            ),
        ]

    def __str__(self) -> str:
        return f"serving rules of {self.tenant}"
