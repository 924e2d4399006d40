from django.db import models

from cachecontrol.states import PolicyState
from registry.models import BaseModel, Person


class CachePolicy(models.Model):
    """One proposal for a base model's cache policy, by its number; what it says never changes.

    ``text`` is the YAML as it was proposed, ``document`` what it means with every default written out, and ``digest``
    the SHA-256 of that in canonical JSON: what those who approve it name. ``decided_by`` approved or declined it.
    """

    base_model = models.ForeignKey(BaseModel, on_delete=models.PROTECT, related_name="cache_policies")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, default=PolicyState.PROPOSED.value)
    text = models.TextField()
    document = models.JSONField()
    digest = models.CharField(max_length=64)
    comment = models.TextField(blank=True, default="")
    proposed_by = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="proposed_cache_policies")
    proposed_at = models.DateTimeField()
    decided_by = models.ForeignKey(Person, on_delete=models.PROTECT, null=True, related_name="decided_cache_policies")
    decided_at = models.DateTimeField(null=True)
    reason = models.TextField(blank=True, default="")
    activated_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["base_model", "number"], name="cache_policy_number_once"),
            models.UniqueConstraint(
                fields=["base_model"], condition=models.Q(state="active"), name="cache_policy_one_active"
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=[state.value for state in PolicyState]), name="cache_policy_state_known"
            ),
            models.CheckConstraint(
                condition=models.Q(state="proposed", decided_by__isnull=True, decided_at__isnull=True)
                | models.Q(~models.Q(state="proposed"), decided_by__isnull=False, decided_at__isnull=False),
                name="cache_policy_decided_by_somebody",
            ),
            models.CheckConstraint(
                condition=models.Q(state="declined")
                | models.Q(decided_by__isnull=True)
                | ~models.Q(decided_by=models.F("proposed_by")),
                name="cache_policy_four_eyes",
            ),
        ]

    def __str__(self) -> str:
        return f"cache policy {self.number} of {self.base_model}"
