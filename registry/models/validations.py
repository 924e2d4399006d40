from django.db import models

from registry.models.adapters import Version


class ValidationReport(models.Model):
    """What one run of the checks found; ``digest`` is the SHA-256 of the report's canonical JSON."""

    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="reports")
    verdict = models.CharField(max_length=8)
    policy_version = models.CharField(max_length=32)
    report = models.JSONField()
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.version}: {self.verdict}"
