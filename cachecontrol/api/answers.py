"""Shapes of answers, for the OpenAPI document. What is really answered is made in ``documents``; a test compares."""

from typing import Any

from rest_framework import serializers

from cachecontrol.states import DemandState, Desired, EngineKind, NodeStatus, Observed


class ResidencyAnswer(serializers.Serializer[Any]):
    node = serializers.CharField()
    tenant = serializers.CharField()
    adapter = serializers.CharField()
    version = serializers.CharField()
    version_id = serializers.UUIDField()
    engine_name = serializers.CharField()
    desired = serializers.ChoiceField(choices=[state.value for state in Desired])
    observed = serializers.ChoiceField(choices=[state.value for state in Observed])
    generation = serializers.IntegerField()
    message = serializers.CharField()
    load_ms = serializers.IntegerField(allow_null=True)
    updated_at = serializers.DateTimeField()


class NodeAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    engine_kind = serializers.ChoiceField(choices=[kind.value for kind in EngineKind])
    engine_url = serializers.CharField()
    base_model = serializers.CharField()
    base_revision = serializers.CharField()
    gpu_slots = serializers.IntegerField()
    cpu_slots = serializers.IntegerField()
    max_rank = serializers.IntegerField()
    disk_bytes = serializers.IntegerField()
    status = serializers.ChoiceField(choices=[status.value for status in NodeStatus])
    engine_healthy = serializers.BooleanField()
    tainted = serializers.BooleanField()
    boot_id = serializers.CharField(allow_null=True)
    last_seen_at = serializers.DateTimeField(allow_null=True)
    residencies = ResidencyAnswer(many=True)


class NewNodeAnswer(NodeAnswer):
    token = serializers.CharField(help_text="The node's token; told this once.")


class ReportedAnswer(serializers.Serializer[Any]):
    ok = serializers.BooleanField()
    unknown = serializers.ListField(
        child=serializers.CharField(), help_text="Names the registry did not ask this node to hold."
    )


class RecordedAnswer(serializers.Serializer[Any]):
    ok = serializers.BooleanField()


class DemandAnswer(serializers.Serializer[Any]):
    state = serializers.ChoiceField(choices=[state.value for state in DemandState])
    message = serializers.CharField()
