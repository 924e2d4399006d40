from django.db import models

from registry.models.adapters import Version
from registry.models.people import Person
from registry.states import Decision


class Approval(models.Model):
    """One reviewer's word on one digest of one version."""

    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="approvals")
    reviewer = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="approvals")
    decision = models.CharField(max_length=8)
    root_digest = models.CharField(max_length=64)
    validation_digest = models.CharField(max_length=64)
    comment = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "reviewer"], name="approval_once_per_reviewer"),
            models.CheckConstraint(
                condition=models.Q(decision__in=[decision.value for decision in Decision]),
                name="approval_decision_known",
            ),
        ]
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return f"{self.reviewer} {self.decision} {self.version}"
