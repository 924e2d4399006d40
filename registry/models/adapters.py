import uuid

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from registry.models.base_models import BaseModel, BaseModelRevision
from registry.models.people import Person
from registry.models.tenants import Tenant
from registry.states import VersionState


class Adapter(models.Model):
    """A named line of weights of one tenant."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="adapters")
    name = models.CharField(max_length=63)
    base_model = models.ForeignKey(BaseModel, on_delete=models.PROTECT, related_name="adapters")
    description = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="adapter_name_once")]
        indexes = [models.Index(fields=["name"], name="adapter_name_begins", opclasses=["varchar_pattern_ops"])]

    def __str__(self) -> str:
        return f"{self.tenant}/{self.name}"


class Version(models.Model):
    """An immutable set of files. All but its state and what validation found is fixed when it is created."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    adapter = models.ForeignKey(Adapter, on_delete=models.PROTECT, related_name="versions")
    name = models.CharField(max_length=64)
    base_revision = models.ForeignKey(BaseModelRevision, on_delete=models.PROTECT, related_name="versions")
    uploader = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="versions")
    root_digest = models.CharField(max_length=64)
    engine_name = models.CharField(max_length=80, unique=True)
    lineage = models.JSONField(default=dict)
    state = models.CharField(max_length=12, default=VersionState.UPLOADING.value)
    state_changed_at = models.DateTimeField()
    state_message = models.TextField(blank=True, default="")
    rank = models.PositiveIntegerField(null=True)
    target_modules = ArrayField(models.CharField(max_length=200), default=list)
    validation_digest = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    validation_sent_at = models.DateTimeField(null=True)
    evaluation_attempts = models.PositiveSmallIntegerField(default=0, db_default=0)
    purged_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["adapter", "name"], name="version_name_once"),
            models.CheckConstraint(
                condition=models.Q(state__in=[state.value for state in VersionState]), name="version_state_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state__in=["candidate", "approved", "yanked"])
                | (models.Q(rank__isnull=False) & ~models.Q(validation_digest="")),
                name="version_validated_before_candidate",
            ),
        ]
        indexes = [
            models.Index(fields=["state", "state_changed_at"], name="version_state_since"),
            models.Index(fields=["adapter", "-created_at"], name="version_newest_first"),
            # Lists of versions, however long: all, those in a state, those whose name or digest begins so.
            models.Index(fields=["-created_at", "-id"], name="version_by_age"),
            models.Index(fields=["state", "-created_at", "-id"], name="version_in_state_by_age"),
            models.Index(fields=["name"], name="version_name_begins", opclasses=["varchar_pattern_ops"]),
            models.Index(fields=["root_digest"], name="version_digest_begins", opclasses=["varchar_pattern_ops"]),
            GinIndex(fields=["lineage"], name="version_lineage", opclasses=["jsonb_path_ops"]),
        ]

    def __str__(self) -> str:
        return f"{self.adapter}@{self.name}"
