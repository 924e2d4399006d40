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


class UploadInParts(models.Model):
    """One file of one version on its way to the store in parts. Gone when the file is stored or the version is over.

    ``store_id`` is the store's name for it; ``part_bytes`` the size of each part but the last; ``digests`` the SHA-256
    of each part that an address was given out for, by its number.
    """

    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="uploads_in_parts")
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="uploads_in_parts")
    store_id = models.TextField()
    part_bytes = models.BigIntegerField()
    digests = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "artifact"], name="upload_in_parts_once"),
            models.CheckConstraint(condition=models.Q(part_bytes__gt=0), name="upload_in_parts_of_some_size"),
        ]

    def __str__(self) -> str:
        return f"{self.version_id}: {self.artifact_id}"
