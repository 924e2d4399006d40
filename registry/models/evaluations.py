from django.db import models

from registry.models.adapters import Adapter
from registry.models.tenants import Tenant


class EvaluationSet(models.Model):
    """What new versions are asked: those of one adapter, or of every adapter of the tenant without a set of its own.

    ``examples`` is as ``registry.evaluation.examples_json`` writes it, ``digest`` the SHA-256 of its canonical JSON.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="evaluation_sets")
    name = models.CharField(max_length=63)
    adapter = models.ForeignKey(Adapter, on_delete=models.PROTECT, null=True, related_name="evaluation_sets")
    examples = models.JSONField()
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="evaluation_set_name_once"),
            models.UniqueConstraint(
                fields=["tenant", "adapter"], name="evaluation_set_once_for_each", nulls_distinct=False
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenant}/{self.name}"


class EvaluationGates(models.Model):
    """A tenant's gates, as ``registry.evaluation.Gates`` writes them; a tenant without a row has no gates."""

    tenant = models.OneToOneField(Tenant, on_delete=models.PROTECT, primary_key=True, related_name="evaluation_gates")
    gates = models.JSONField()
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"gates of {self.tenant}"
