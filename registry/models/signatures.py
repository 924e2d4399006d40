from django.db import models

from registry.models.adapters import Version


class SigningKey(models.Model):
    """The public half of a key that has signed, with the time it was in use."""

    key_id = models.CharField(max_length=64, unique=True)
    public_pem = models.TextField()
    valid_from = models.DateTimeField()
    valid_to = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.key_id


class Signature(models.Model):
    """The model-signing bundle and the release attestation of one version."""

    version = models.OneToOneField(Version, on_delete=models.PROTECT, related_name="signature")
    key = models.ForeignKey(SigningKey, on_delete=models.PROTECT, related_name="signatures")
    root_digest = models.CharField(max_length=64)
    bundle = models.TextField()
    attestation = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.version} by {self.key}"
