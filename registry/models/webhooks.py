from uuid import uuid4

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from registry.models.tenants import Tenant
from registry.states import DeliveryState


class WebhookEndpoint(models.Model):
    """A receiver of a tenant's events; without a tenant it is the platform's and told of every chain.

    ``secret`` signs and is sealed (``registry.webhooks.sealing``); ``previous_secret`` signs beside it until
    ``previous_until``. ``failing_since`` is the first failure that no success has followed.
    """

    id = models.UUIDField(primary_key=True, default=uuid4)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, null=True, related_name="webhooks")
    name = models.CharField(max_length=63)
    url = models.TextField()
    kinds = ArrayField(models.CharField(max_length=60))
    secret = models.BinaryField()
    previous_secret = models.BinaryField(null=True)
    previous_until = models.DateTimeField(null=True)
    failing_since = models.DateTimeField(null=True)
    disabled_at = models.DateTimeField(null=True)
    disabled_reason = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], nulls_distinct=False, name="webhook_name_once"),
            models.CheckConstraint(condition=~Q(kinds=[]), name="webhook_has_kinds"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant or 'platform'}/{self.name}"


class WebhookCursor(models.Model):
    """How far an endpoint was told of an audit chain: what lies behind ``seq`` is still to come."""

    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.CASCADE, related_name="cursors")
    chain = models.CharField(max_length=63)
    seq = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "chain"], name="webhook_cursor_once")]

    def __str__(self) -> str:
        return f"{self.endpoint} at {self.chain}#{self.seq}"


class WebhookDelivery(models.Model):
    """One event on its way to one endpoint. ``body`` never changes.

    Of one ``object_key`` the older goes first; an empty one waits for nobody (tests, and what is sent again by hand).
    """

    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries")
    event_id = models.CharField(max_length=100)
    kind = models.CharField(max_length=60)
    object_key = models.CharField(max_length=200, blank=True, default="")
    body = models.TextField()
    state = models.CharField(max_length=10, default=DeliveryState.PENDING.value)
    tries = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()
    next_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    again_of = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="again")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "event_id"], condition=~Q(object_key=""), name="webhook_event_once"
            ),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in DeliveryState]), name="webhook_delivery_state_known"
            ),
        ]
        indexes = [
            models.Index(fields=["next_at"], condition=Q(state="pending"), name="webhook_delivery_due"),
            models.Index(
                fields=["endpoint", "object_key", "id"], condition=Q(state="pending"), name="webhook_delivery_order"
            ),
            models.Index(fields=["endpoint", "-id"], name="webhook_delivery_newest"),
            models.Index(fields=["ended_at"], name="webhook_delivery_by_end"),
        ]

    def __str__(self) -> str:
        return f"{self.event_id} to {self.endpoint}"


class WebhookAttempt(models.Model):
    """What came of one attempt; ``status`` null: there was no answer."""

    delivery = models.ForeignKey(WebhookDelivery, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveSmallIntegerField()
    at = models.DateTimeField()
    status = models.PositiveSmallIntegerField(null=True)
    took_ms = models.PositiveIntegerField()
    excerpt = models.TextField(blank=True, default="")
    error = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["delivery", "number"], name="webhook_attempt_once")]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.delivery_id}: {self.status}"
