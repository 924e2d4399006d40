from django.db import models

from registry.models.adapters import Version
from registry.models.people import Person
from registry.models.tenants import Tenant


class SigningKey(models.Model):
    """The public half of a key that signs for the registry.

    A signature counts if it was made from ``valid_from`` until ``valid_to`` (None: no end yet); nothing that a revoked
    key ever signed counts.
    """

    key_id = models.CharField(max_length=64, unique=True)
    public_pem = models.TextField()
    valid_from = models.DateTimeField()
    valid_to = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    revoked_reason = models.TextField(blank=True, default="", db_default="")

    def __str__(self) -> str:
        return self.key_id


class Signature(models.Model):
    """The model-signing bundle and the release attestation of one version.

    They change only when the key that made them is revoked: then the same statements are signed by another.
    """

    version = models.OneToOneField(Version, on_delete=models.PROTECT, related_name="signature")
    key = models.ForeignKey(SigningKey, on_delete=models.PROTECT, related_name="signatures")
    root_digest = models.CharField(max_length=64)
    bundle = models.TextField()
    attestation = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    resigned_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.version} by {self.key}"


class PipelineKey(models.Model):
    """A public key of a tenant's training pipeline, as registered."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="pipeline_keys")
    name = models.CharField(max_length=100)
    key_id = models.CharField(max_length=64)
    public_pem = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True)
    revoked_reason = models.TextField(blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "key_id"], name="pipeline_key_once")]

    def __str__(self) -> str:
        return f"{self.tenant}: {self.name}"


class PipelineSignature(models.Model):
    """A model-signing bundle over a version's files that the pipeline made with its own key."""

    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="pipeline_signatures")
    key = models.ForeignKey(PipelineKey, on_delete=models.PROTECT, related_name="signatures")
    bundle = models.TextField()
    attached_by = models.ForeignKey(Person, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "key"], name="pipeline_signature_once")]

    def __str__(self) -> str:
        return f"{self.version} by {self.key}"
