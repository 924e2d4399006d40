from typing import Any

from rest_framework import serializers

from registry.services.webhooks.endpoints import MAX_OVERLAP
from registry.states import DeliveryState
from registry.webhooks.addresses import MAX_URL
from registry.webhooks.kinds import PATTERNS

_HOURS = int(MAX_OVERLAP.total_seconds() // 3600)
_DEFAULT_HOURS = 24
_KINDS_TEXT = "Kinds of events, or all of a family: " + ", ".join(each for each in PATTERNS if each.endswith("*"))


class WebhookChangeInput(serializers.Serializer[Any]):
    url = serializers.CharField(max_length=MAX_URL, help_text="Where events are posted to: https://…")
    kinds = serializers.ListField(
        child=serializers.ChoiceField(choices=PATTERNS),
        allow_empty=False,
        max_length=len(PATTERNS),
        help_text=_KINDS_TEXT,
    )


class WebhookInput(WebhookChangeInput):
    name = serializers.CharField()


class RotationInput(serializers.Serializer[Any]):
    overlap_hours = serializers.IntegerField(
        required=False,
        default=_DEFAULT_HOURS,
        min_value=0,
        max_value=_HOURS,
        help_text="How long deliveries are signed with the secret before as well.",
    )


class EnableInput(serializers.Serializer[Any]):
    skip_missed = serializers.BooleanField(
        required=False, default=False, help_text="Leave out what it missed. What waited to be sent is parked."
    )


class DeliveryFilters(serializers.Serializer[Any]):
    state = serializers.ChoiceField(required=False, choices=[state.value for state in DeliveryState])
    kind = serializers.CharField(required=False)
    event = serializers.CharField(required=False, source="event_id")
