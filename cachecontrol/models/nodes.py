from django.db import models

from cachecontrol.states import EngineKind, NodeStatus
from registry.models import ApiToken, BaseModelRevision


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
    token = models.OneToOneField(ApiToken, on_delete=models.PROTECT, related_name="node")
    status = models.CharField(max_length=8, default=NodeStatus.NEW.value)
    boot_id = models.CharField(max_length=100, blank=True, default="")
    last_seen_at = models.DateTimeField(null=True)
    engine_healthy = models.BooleanField(default=False)
    # A load that failed may have left something in a slot of the engine: others are preferred until its restart.
    tainted = models.BooleanField(default=False)
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
        ]

    def __str__(self) -> str:
        return self.name
