from django.db import models

from cachecontrol.models.nodes import Node
from cachecontrol.states import Desired, ErrorClass, Observed, Tier
from registry.models import Version


class Residency(models.Model):
    """One version on one node: where it ought to be and where it was last known to be.

    ``generation`` counts what was asked of the node and never falls; ``acted_generation`` is the last one that the node
    brought to an end. While it lags behind, a command is due or on its way (``command_sent_at``).

    ``is_hot`` is the plan's: among what is in the engine, it counts this one as in a slot. ``tier`` is where it is; an
    estimate unless the engine was asked.
    """

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="residencies")
    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="residencies")
    desired = models.CharField(max_length=8)
    is_hot = models.BooleanField(default=False)
    observed = models.CharField(max_length=8, default=Observed.ABSENT.value)
    tier = models.CharField(max_length=4, blank=True, default="")
    tier_is_estimate = models.BooleanField(default=False)
    generation = models.BigIntegerField(default=1)
    acted_generation = models.BigIntegerField(default=0)
    command_sent_at = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)
    drain_until = models.DateTimeField(null=True)
    last_demand_at = models.DateTimeField(null=True)
    message = models.CharField(max_length=500, blank=True, default="")
    error_class = models.CharField(max_length=10, blank=True, default="")
    # The agent's own word for what went wrong, such as disk_full; empty where it has none.
    error_code = models.CharField(max_length=40, blank=True, default="", db_default="")
    # When the version was last given to another node because this one had no room for it.
    given_up_at = models.DateTimeField(null=True)
    load_ms = models.PositiveIntegerField(null=True)
    fetch_ms = models.PositiveIntegerField(null=True)
    # All that was ever transferred for it to this node.
    fetched_bytes = models.BigIntegerField(default=0)
    last_used_at = models.DateTimeField(null=True)
    # The node's score clock when it was last used.
    score_clock = models.FloatField(default=0.0)
    state_changed_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["node", "version"], name="residency_once_per_node"),
            models.CheckConstraint(
                condition=models.Q(desired__in=[desired.value for desired in Desired]), name="residency_desired_known"
            ),
            models.CheckConstraint(
                condition=models.Q(observed__in=[observed.value for observed in Observed]),
                name="residency_observed_known",
            ),
            models.CheckConstraint(
                condition=models.Q(error_class__in=["", *(error.value for error in ErrorClass)]),
                name="residency_error_class_known",
            ),
            models.CheckConstraint(
                condition=models.Q(acted_generation__gte=0, generation__gte=models.F("acted_generation")),
                name="residency_acted_up_to_generation",
            ),
            models.CheckConstraint(
                condition=models.Q(tier__in=["", *(tier.value for tier in Tier)]), name="residency_tier_known"
            ),
            models.CheckConstraint(
                condition=models.Q(is_hot=False) | models.Q(desired=Desired.GPU.value), name="residency_hot_is_wanted"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.version} on {self.node}"
