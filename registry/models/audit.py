from django.db import models
from django.db.models.fields.json import KeyTextTransform


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
    how = models.CharField(max_length=20, default="", db_default="")
    payload = models.TextField()
    prev_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["chain", "seq"], name="audit_seq_once")]
        # What finds records by what they say is in ``registry/sql/audit_search.sql``.
        indexes = [
            models.Index(fields=["chain", "at"], name="audit_by_time"),
            # What happened to one thing.
            models.Index(KeyTextTransform("id", "object"), "chain", "seq", name="audit_of_object"),
        ]

    def __str__(self) -> str:
        return f"{self.chain}#{self.seq} {self.action}"


class AuditCheckpoint(models.Model):
    """Where a signed checkpoint lies in the store. The store's object is what proves something; this only finds it."""

    chain = models.CharField(max_length=63)
    seq = models.BigIntegerField()
    head = models.CharField(max_length=64)
    object_key = models.CharField(max_length=200, unique=True)
    sha256 = models.CharField(max_length=64)
    key_id = models.CharField(max_length=64)
    locked_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["chain", "-id"], name="audit_checkpoint_newest")]

    def __str__(self) -> str:
        return self.object_key


class AuditCheck(models.Model):
    """One checking of a chain that somebody asked for, how far it is, and what came of it.

    ``reached`` is the last record that fits, ``hash`` its hash; ``until`` the one that was the last when it began;
    ``signed_to`` the last one that a signed checkpoint agrees with. ``finding`` is empty as long as all is well.
    """

    chain = models.CharField(max_length=63)
    asked_by = models.CharField(max_length=254)
    until = models.BigIntegerField()
    reached = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64)
    signed_to = models.BigIntegerField(default=0)
    started_at = models.DateTimeField(auto_now_add=True)
    moved_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    finding = models.CharField(max_length=20, blank=True, default="")
    broken_at = models.BigIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["chain"], condition=models.Q(ended_at=None), name="audit_check_one_at_a_time"
            )
        ]
        indexes = [models.Index(fields=["chain", "-id"], name="audit_check_newest")]

    def __str__(self) -> str:
        return f"{self.chain}: {self.reached} of {self.until}"


class AuditNotice(models.Model):
    """Something that is told in the log once in a while and only counted in between, so that nobody can flood the log.

    ``told`` is how many of ``count`` the log has.
    """

    chain = models.CharField(max_length=63)
    key = models.CharField(max_length=64)
    facts = models.JSONField()
    count = models.BigIntegerField(default=1)
    told = models.BigIntegerField(default=0)
    began_at = models.DateTimeField()
    last_at = models.DateTimeField()
    ends_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["chain", "key"], name="audit_notice_once")]
        indexes = [models.Index(fields=["ends_at"], name="audit_notice_by_end")]

    def __str__(self) -> str:
        return f"{self.chain}: {self.count} times {self.key}"
