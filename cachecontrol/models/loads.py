from django.db import models

from cachecontrol.models.nodes import Node
from cachecontrol.states import LoadState
from registry.models import Tenant, Version

OPEN = (LoadState.QUEUED.value, LoadState.PLACED.value)


class LoadRequest(models.Model):
    """A version that somebody waits for: from the first demand until it is loaded, refused or given up.

    ``pool`` is the digest of the base revision; ``waiting`` the most requests that a gateway said wait for it at once.
    """

    pool = models.CharField(max_length=64)
    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="load_requests")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="load_requests")
    sla = models.CharField(max_length=63)
    state = models.CharField(max_length=8, default=LoadState.QUEUED.value)
    waiting = models.PositiveIntegerField(default=0)
    enqueued_at = models.DateTimeField()
    deadline_at = models.DateTimeField()
    placed_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    node = models.ForeignKey(Node, on_delete=models.PROTECT, null=True, related_name="load_requests")
    # Where the version was when it was first asked for: on a disk of the pool, or only in the store.
    tier = models.CharField(max_length=8, default="remote")
    message = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["version"], condition=models.Q(state__in=OPEN), name="load_request_open_once"
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=[state.value for state in LoadState]), name="load_request_state_known"
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=OPEN, ended_at__isnull=True)
                | (~models.Q(state__in=OPEN) & models.Q(ended_at__isnull=False)),
                name="load_request_ends_once",
            ),
        ]
        indexes = [
            models.Index(
                fields=["pool", "enqueued_at"], condition=models.Q(state=LoadState.QUEUED.value), name="load_queue"
            ),
            models.Index(fields=["pool", "placed_at"], name="load_served"),
        ]

    def __str__(self) -> str:
        return f"{self.version}: {self.state}"


class LoadFailure(models.Model):
    """That a version failed to load for good: so many times, on whatever nodes, since it was last loaded anywhere."""

    version = models.OneToOneField(Version, on_delete=models.PROTECT, primary_key=True, related_name="load_failure")
    failures = models.PositiveIntegerField(default=1)
    last_at = models.DateTimeField()
    message = models.CharField(max_length=500, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.version} failed {self.failures} times"


class Lease(models.Model):
    """Who may do something that only one process should do at a time, and until when."""

    name = models.CharField(max_length=120, primary_key=True)
    held_until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} until {self.held_until}"
