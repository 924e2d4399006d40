"""Shapes of request bodies. Rules beyond type and presence belong to the services."""

from typing import Any

from rest_framework import serializers

from cachecontrol.states import EngineKind, ErrorClass, NodeStatus, Outcome

_MAX_NAMES = 10_000
_MAX_MS = 2**31 - 1


class NodeInput(serializers.Serializer[Any]):
    name = serializers.CharField()
    engine_kind = serializers.CharField()
    engine_url = serializers.CharField(max_length=500)
    base_model = serializers.CharField()
    base_revision = serializers.CharField()
    gpu_slots = serializers.IntegerField(min_value=1, max_value=4096)
    cpu_slots = serializers.IntegerField(min_value=1, max_value=100_000)
    max_rank = serializers.IntegerField(min_value=1, max_value=4096)
    # The largest number that canonical JSON, and with it the audit log, can hold.
    disk_bytes = serializers.IntegerField(min_value=1, max_value=2**53 - 1)


class PlaceInput(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    adapter = serializers.CharField()
    version = serializers.CharField()


class LoadedInput(serializers.Serializer[Any]):
    """One line of an engine's list of models; its ``root`` (a path) is of no use here."""

    name = serializers.CharField(max_length=200)


class ReportInput(serializers.Serializer[Any]):
    boot_id = serializers.CharField(max_length=100, allow_blank=True)
    engine_healthy = serializers.BooleanField()
    loaded = serializers.ListField(child=LoadedInput(), max_length=_MAX_NAMES)
    on_disk = serializers.ListField(child=serializers.CharField(max_length=200), max_length=_MAX_NAMES)
    sent_at = serializers.DateTimeField(required=False)


class OutcomeInput(serializers.Serializer[Any]):
    engine_name = serializers.CharField(max_length=200)
    generation = serializers.IntegerField(min_value=1, max_value=2**63 - 1)
    outcome = serializers.ChoiceField(choices=[outcome.value for outcome in Outcome])
    message = serializers.CharField(required=False, allow_blank=True, allow_null=True, default="", max_length=4000)
    error_class = serializers.ChoiceField(
        choices=[error.value for error in ErrorClass], required=False, allow_null=True, default=None
    )
    timings_ms = serializers.DictField(
        child=serializers.IntegerField(min_value=0, max_value=_MAX_MS), required=False, default=dict
    )
    boot_id = serializers.CharField(required=False, allow_blank=True, allow_null=True, max_length=100)


class DemandInput(serializers.Serializer[Any]):
    version_id = serializers.UUIDField()


class NodeFilters(serializers.Serializer[Any]):
    """Filters of the list of nodes: ``source`` is the lookup that the parameter stands for."""

    status = serializers.ChoiceField(required=False, choices=[status.value for status in NodeStatus])
    engine_kind = serializers.ChoiceField(required=False, choices=[kind.value for kind in EngineKind])
    base_model = serializers.CharField(required=False, source="base_revision__base_model__name")
