from django.db import models

from cachecontrol.models.nodes import Node
from cachecontrol.states import EvictionReason
from registry.models import Version

_FROM = ("gpu", "cpu", "disk")
_TO = ("cpu", "disk", "remote")


class Eviction(models.Model):
    """That a version went to a lower tier of a node, and why: the answer to "why was it evicted". Append-only.

    ``score`` and ``factors`` are the policy's at that moment (the smallest is evicted first), ``runner_up`` the version
    that would have gone instead. ``asked_by`` names the tenant whose load needed the room, if one did.
    """

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="evictions")
    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="evictions")
    tier = models.CharField(max_length=8)
    to_tier = models.CharField(max_length=8)
    reason = models.CharField(max_length=12)
    policy = models.CharField(max_length=20, blank=True, default="")
    policy_number = models.PositiveIntegerField(null=True)
    score = models.FloatField(null=True)
    factors = models.JSONField(default=dict)
    runner_up = models.ForeignKey(Version, on_delete=models.PROTECT, null=True, related_name="+")
    runner_up_score = models.FloatField(null=True)
    asked_by = models.CharField(max_length=63, blank=True, default="")
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(tier__in=_FROM, to_tier__in=_TO), name="eviction_tiers_known"),
            models.CheckConstraint(
                condition=models.Q(reason__in=[reason.value for reason in EvictionReason]),
                name="eviction_reason_known",
            ),
        ]
        indexes = [
            models.Index(fields=["version", "-at"], name="eviction_of_version"),
            models.Index(fields=["node", "-at"], name="eviction_on_node"),
            models.Index(fields=["-at", "-id"], name="eviction_newest_first"),
        ]

    def __str__(self) -> str:
        return f"{self.version} from {self.tier} to {self.to_tier}"
