from django.db import models

from registry.models.adapters import Version
from registry.models.tenants import Tenant


class Artifact(models.Model):
    """A file by its SHA-256, kept once per tenant. ``stored_at`` is set while its bytes are in the store."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="artifacts")
    sha256 = models.CharField(max_length=64)
    size = models.BigIntegerField()
    stored_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "sha256"], name="artifact_once_per_tenant"),
            models.CheckConstraint(condition=models.Q(size__gte=0), name="artifact_size_not_negative"),
        ]

    def __str__(self) -> str:
        return self.sha256


class VersionFile(models.Model):
    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="files")
    path = models.CharField(max_length=255)
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="files")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "path"], name="version_path_once")]
        ordering = ["path"]

    def __str__(self) -> str:
        return self.path
