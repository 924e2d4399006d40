from django.db import models


class IdempotentAnswer(models.Model):
    """What a POST with an ``Idempotency-Key`` was answered; kept for a day, for the caller alone.

    ``sealed`` is encrypted with a key made from the caller's token, which is kept nowhere: answers hold new tokens.
    """

    owner = models.CharField(max_length=16)
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    sealed = models.BinaryField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "key"], name="idempotency_key_once")]
        indexes = [models.Index(fields=["created_at"], name="idempotency_by_age")]

    def __str__(self) -> str:
        return f"{self.owner}: {self.key}"
