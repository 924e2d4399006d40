from typing import Final

from django.db import models

from cachecontrol.states import EngineKind, NodeStatus
from registry.models import ApiToken, BaseModelRevision

# ``Node.is_closed``, to be asked of the database.
CLOSED: Final = (
    models.Q(cordoned=True)
    | models.Q(draining=True)
    | models.Q(poisoned=True)
    | models.Q(recycling_since__isnull=False)
)


class Node(models.Model):
    """A machine with an engine and an agent. Sizes are fixed by how its engine was started."""

    name = models.CharField(max_length=63, unique=True)
    engine_kind = models.CharField(max_length=12)
    engine_url = models.CharField(max_length=500)
    base_revision = models.ForeignKey(BaseModelRevision, on_delete=models.PROTECT, related_name="nodes")
    gpu_slots = models.PositiveIntegerField()
    cpu_slots = models.PositiveIntegerField()
    max_rank = models.PositiveIntegerField()
    disk_bytes = models.BigIntegerField()
    # How many bytes of adapters its engine may keep in CPU memory; null: as many as the policy says.
    memory_bytes = models.BigIntegerField(null=True)
    token = models.OneToOneField(ApiToken, on_delete=models.PROTECT, related_name="node")
    status = models.CharField(max_length=8, default=NodeStatus.NEW.value)
    boot_id = models.CharField(max_length=100, blank=True, default="")
    last_seen_at = models.DateTimeField(null=True)
    # When its newest report was sent, by its own clock: what was sent before and comes later tells nothing new.
    reported_at = models.DateTimeField(null=True)
    engine_healthy = models.BooleanField(default=False)
    # Since when its engine is not well; null while it is, and while nobody knows.
    engine_sick_since = models.DateTimeField(null=True)
    # A load that failed may have left something in a slot of the engine: others are preferred until its restart.
    tainted = models.BooleanField(default=False)
    # Its answers can't be trusted: a probe was not finite, or its health lied.
    poisoned = models.BooleanField(default=False)
    # Its agent was given a way to restart the engine.
    restartable = models.BooleanField(default=False)
    # An operator's wishes. Cordoned: nothing new is placed. Draining: nothing is wanted there.
    cordoned = models.BooleanField(default=False)
    draining = models.BooleanField(default=False)
    # Since when that holds; null while it doesn't, and for what began before this was kept.
    cordoned_at = models.DateTimeField(null=True)
    draining_at = models.DateTimeField(null=True)
    tainted_at = models.DateTimeField(null=True)
    poisoned_at = models.DateTimeField(null=True)
    # While its engine is being restarted on our demand: since when, and which start of it is to end.
    recycling_since = models.DateTimeField(null=True)
    recycling_boot_id = models.CharField(max_length=100, blank=True, default="")
    # Restarts asked for in a row, and not before when the next one is; both forgotten after a good while.
    recycles = models.PositiveIntegerField(default=0)
    recycle_after = models.DateTimeField(null=True)
    # An alarm was raised that this node needs a restart which nobody here can give it.
    stuck = models.BooleanField(default=False)
    # What its engine had that it shouldn't, by the last full report: {"unknown": [names], "mismatched": [names]}.
    drift = models.JSONField(default=dict)
    # How often its engine had a version from another path than its own.
    mismatches = models.BigIntegerField(default=0)
    # When a report last listed everything; one that says "unchanged" stands on that.
    full_report_at = models.DateTimeField(null=True)
    disk_used_bytes = models.BigIntegerField(null=True)
    disk_free_bytes = models.BigIntegerField(null=True)
    # The clock of the scoring policy that ages by evictions.
    score_clock = models.FloatField(default=0.0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(engine_kind__in=[kind.value for kind in EngineKind]), name="node_engine_kind_known"
            ),
            models.CheckConstraint(
                condition=models.Q(status__in=[status.value for status in NodeStatus]), name="node_status_known"
            ),
            models.CheckConstraint(
                condition=models.Q(gpu_slots__gte=1, cpu_slots__gte=models.F("gpu_slots"), max_rank__gte=1),
                name="node_has_slots",
            ),
            models.CheckConstraint(condition=models.Q(disk_bytes__gt=0), name="node_has_a_disk"),
            models.CheckConstraint(
                condition=models.Q(memory_bytes__isnull=True) | models.Q(memory_bytes__gt=0), name="node_has_memory"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_closed(self) -> bool:
        """Whether nothing new may be placed here, by an operator's word or by the state of its engine."""
        return self.cordoned or self.draining or self.poisoned or self.recycling_since is not None
