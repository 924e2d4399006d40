from django.db import models


class AuditRecord(models.Model):
    """One link of a tenant's audit chain. Written only by the SQL function ``audit_append``."""

    chain = models.CharField(max_length=63)
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    actor = models.JSONField()
    action = models.CharField(max_length=100)
    object = models.JSONField()
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    reason = models.TextField(default="")
    request_id = models.CharField(max_length=100, default="")
    source = models.CharField(max_length=200, default="")
    payload = models.TextField()
    prev_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["chain", "seq"], name="audit_seq_once")]

    def __str__(self) -> str:
        return f"{self.chain}#{self.seq} {self.action}"
