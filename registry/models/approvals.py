from django.db import models
from django.utils import timezone

from registry.models.adapters import Version
from registry.models.people import Person
from registry.states import Decision


class Approval(models.Model):
    """One reviewer's word on what a version was at that moment: its files, its report and its base revision.

    It is never changed. A word on other digests than the version has now is void; ``registry.quorum`` says which count.
    """

    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="approvals")
    reviewer = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="approvals")
    decision = models.CharField(max_length=8)
    root_digest = models.CharField(max_length=64)
    validation_digest = models.CharField(max_length=64)
    base_digest = models.CharField(max_length=64)
    break_glass = models.BooleanField(default=False, db_default=False)
    comment = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(decision__in=[decision.value for decision in Decision]),
                name="approval_decision_known",
            ),
            models.CheckConstraint(
                condition=models.Q(break_glass=False) | (models.Q(decision="approved") & ~models.Q(comment="")),
                name="approval_break_glass_has_a_reason",
            ),
        ]
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return f"{self.reviewer} {self.decision} {self.version}"


class VersionComment(models.Model):
    """Something a person said in the review of a version; never changed."""

    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="comments")
    author = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="comments")
    text = models.TextField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return f"{self.author} on {self.version}"
