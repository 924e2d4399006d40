from django.db import models

from registry.models.adapters import Version


class ValidationReport(models.Model):
    """What one run of the checks found; ``digest`` is the SHA-256 of the report's canonical JSON.

    ``reference`` is how base and adapter read a fixed text (``registry.reports.ProbeReference``): what nodes compare
    their engine's reading with. The report names its digest.
    """

    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="reports")
    verdict = models.CharField(max_length=8)
    policy_version = models.CharField(max_length=32)
    report = models.JSONField()
    digest = models.CharField(max_length=64)
    reference = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.version}: {self.verdict}"


class Revalidation(models.Model):
    """One wish to check a decided version again, under the rules of today; at most one of a version is open.

    ``sent_at`` is when a worker was last asked, or last said that it is at it.
    """

    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="revalidations")
    requested_by = models.CharField(max_length=254)
    reason = models.TextField(blank=True, default="")
    requested_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    report = models.ForeignKey(ValidationReport, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["version"], condition=models.Q(finished_at__isnull=True), name="revalidation_open_once"
            ),
        ]
        indexes = [
            models.Index(fields=["sent_at"], condition=models.Q(finished_at__isnull=True), name="revalidation_open"),
        ]

    def __str__(self) -> str:
        return f"revalidation of {self.version}"
