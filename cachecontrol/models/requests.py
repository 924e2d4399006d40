from django.db import models


class GatewayRequest(models.Model):
    """One request as a gateway saw it; times in milliseconds. Written by gateways, which may do nothing but insert."""

    at = models.DateTimeField()
    request_id = models.TextField()
    tenant = models.TextField()
    alias = models.TextField()
    version_id = models.UUIDField(null=True)
    node = models.TextField(null=True)  # noqa: DJ001  the gateway tells "no node" from a name
    tier = models.TextField()
    status = models.IntegerField()
    error_kind = models.TextField()
    queue_ms = models.IntegerField()
    load_ms = models.IntegerField()
    ttft_ms = models.IntegerField()
    total_ms = models.IntegerField()
    prompt_tokens = models.IntegerField(null=True)
    completion_tokens = models.IntegerField(null=True)
    stream = models.BooleanField()

    class Meta:
        db_table = "gateway_request"
        indexes = [models.Index(fields=["version_id", "-at"], name="gateway_request_last_use")]

    def __str__(self) -> str:
        return self.request_id
