from typing import Any

from rest_framework import serializers

from registry.states import DeliveryState


class WebhookAnswer(serializers.Serializer[Any]):
    tenant = serializers.CharField(allow_null=True, help_text="Null: the platform's.")
    name = serializers.CharField()
    url = serializers.CharField()
    kinds = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    previous_secret_until = serializers.DateTimeField(
        allow_null=True, help_text="Until then deliveries are signed with the secret before as well."
    )
    failing_since = serializers.DateTimeField(
        allow_null=True, help_text="The first failure that no success has followed; null: none."
    )
    disabled_at = serializers.DateTimeField(allow_null=True)
    disabled_reason = serializers.CharField()


class NewWebhookAnswer(WebhookAnswer):
    secret = serializers.CharField(help_text="Checks the signatures. It is in this answer alone.")


class AttemptAnswer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    at = serializers.DateTimeField()
    status = serializers.IntegerField(allow_null=True, help_text="Null: there was no answer, and `error` says why.")
    took_ms = serializers.IntegerField()
    excerpt = serializers.CharField(help_text="The beginning of the answer's body.")
    error = serializers.CharField()


class DeliveryAnswer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    event = serializers.CharField(help_text="The event's id, `webhook-id` of its attempts; the same if it comes again.")
    kind = serializers.CharField()
    state = serializers.ChoiceField(
        choices=[state.value for state in DeliveryState],
        help_text="parked: it has not got through within a day, or what its endpoint missed was skipped.",
    )
    created_at = serializers.DateTimeField()
    next_at = serializers.DateTimeField(allow_null=True, help_text="When the next attempt is made; null: none.")
    ended_at = serializers.DateTimeField(allow_null=True)
    again_of = serializers.IntegerField(allow_null=True, help_text="The delivery that it repeats.")
    attempts = AttemptAnswer(many=True)


class WholeDeliveryAnswer(DeliveryAnswer):
    body = serializers.CharField(help_text="What is posted, byte for byte.")
