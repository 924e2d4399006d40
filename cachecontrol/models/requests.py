from django.db import models


class GatewayRequest(models.Model):
    """One request as a gateway saw it; times in milliseconds. Written by gateways, which may do nothing but insert.

    Partitioned by the day (UTC) of ``at``, the time it came. Its key makes a record that is sent twice one record.
    ``engine_ms`` is the time that an engine spent on it, from its being sent to the last byte.
    """

    pk = models.CompositePrimaryKey("at", "request_id", "is_shadow")
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
    # Defaults of the database: gateways of the version before go on writing while an update is rolled out.
    path = models.TextField(db_default="")
    side = models.TextField(db_default="")
    is_shadow = models.BooleanField(db_default=False)
    fallback = models.TextField(db_default="")
    retries = models.IntegerField(db_default=0)
    engine_ms = models.IntegerField(db_default=0)

    class Meta:
        db_table = "gateway_request"
        indexes = [
            models.Index(fields=["version_id", "-at"], name="gateway_request_last_use"),
            models.Index(fields=["tenant", "at"], name="gateway_request_of_tenant"),
        ]

    def __str__(self) -> str:
        return self.request_id


class GatewayShadow(models.Model):
    """What came of answering a request a second time, by a release's candidate; the answers themselves are gone.

    ``agreement`` is the share of the answers that begins the same, from 0 to 1; none where the candidate failed.
    """

    pk = models.CompositePrimaryKey("at", "request_id")
    at = models.DateTimeField()
    request_id = models.TextField()
    tenant = models.TextField()
    alias = models.TextField()
    stable_version_id = models.UUIDField()
    candidate_version_id = models.UUIDField()
    agreement = models.FloatField(null=True)
    stable_tokens = models.IntegerField(null=True)
    candidate_tokens = models.IntegerField(null=True)
    stable_ms = models.IntegerField()
    candidate_ms = models.IntegerField()
    error_kind = models.TextField()

    class Meta:
        db_table = "gateway_shadow"
        indexes = [models.Index(fields=["candidate_version_id", "-at"], name="gateway_shadow_of_candidate")]

    def __str__(self) -> str:
        return self.request_id


class GatewayFeedback(models.Model):
    """A mark that an application gave to an answer, from 0 (bad) to 1 (good); the last of a tenant, id and name counts.

    There may be no such request: which answer it is about is found out when it is joined (``gateway_marks`` in
    ``cachecontrol/sql/feedback.sql``).
    """

    pk = models.CompositePrimaryKey("at", "tenant", "request_id", "name")
    at = models.DateTimeField()
    tenant = models.TextField()
    request_id = models.TextField()
    name = models.TextField()
    mark = models.FloatField()

    class Meta:
        db_table = "gateway_feedback"

    def __str__(self) -> str:
        return self.request_id
