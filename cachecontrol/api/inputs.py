"""Shapes of request bodies. Rules beyond type and presence belong to the services."""

from typing import Any

from rest_framework import serializers

from cachecontrol.requests.usage import UsageBy
from cachecontrol.states import Desired, EngineKind, ErrorClass, EvictionReason, NodeStatus, Outcome, Tier

_MAX_NAMES = 20_000
_MAX_MS = 2**31 - 1
# The largest number that canonical JSON, and with it the audit log, can hold.
_MAX_BYTES = 2**53 - 1


class NodeInput(serializers.Serializer[Any]):
    name = serializers.CharField()
    engine_kind = serializers.CharField()
    engine_url = serializers.CharField(max_length=500)
    base_model = serializers.CharField()
    base_revision = serializers.CharField()
    gpu_slots = serializers.IntegerField(min_value=1, max_value=4096)
    cpu_slots = serializers.IntegerField(min_value=1, max_value=100_000)
    max_rank = serializers.IntegerField(min_value=1, max_value=4096)
    disk_bytes = serializers.IntegerField(min_value=1, max_value=_MAX_BYTES)
    memory_bytes = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=_MAX_BYTES,
        help_text="What adapters may take of its CPU memory; without it the policy's word holds alone.",
    )


class PlaceInput(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    adapter = serializers.CharField()
    version = serializers.CharField()


class EvictInput(PlaceInput):
    to = serializers.ChoiceField(
        choices=[Desired.DISK.value, Desired.ABSENT.value],
        required=False,
        default=Desired.ABSENT.value,
        help_text="Where it goes: `disk` keeps the files on the node.",
    )


class NodeMarkInput(serializers.Serializer[Any]):
    reason = serializers.CharField(required=False, allow_blank=True, default="", max_length=500)


class DroppedInput(serializers.Serializer[Any]):
    """Files that a node removed by itself."""

    name = serializers.CharField(max_length=200)
    reason = serializers.CharField(required=False, allow_blank=True, default="", max_length=200)


class DiskInput(serializers.Serializer[Any]):
    used_bytes = serializers.IntegerField(min_value=0, max_value=_MAX_BYTES)
    free_bytes = serializers.IntegerField(min_value=0, max_value=_MAX_BYTES)


class LoadedInput(serializers.Serializer[Any]):
    """One line of an engine's list of models; its ``root`` (a path) is of no use here."""

    name = serializers.CharField(max_length=200)


def _names(**options: Any) -> serializers.ListField:  # noqa: ANN401  the field's own options
    return serializers.ListField(child=serializers.CharField(max_length=200), max_length=_MAX_NAMES, **options)


class ReportInput(serializers.Serializer[Any]):
    """A heartbeat. ``loaded`` and ``on_disk`` may be left out when ``unchanged``, and only then."""

    boot_id = serializers.CharField(max_length=100, allow_blank=True)
    engine_healthy = serializers.BooleanField()
    unchanged = serializers.BooleanField(required=False, default=False)
    loaded = serializers.ListField(child=LoadedInput(), max_length=_MAX_NAMES, required=False)
    on_disk = _names(required=False)
    mismatched = _names(required=False, default=list, help_text="Loaded from another path than the node's own.")
    dropped = serializers.ListField(child=DroppedInput(), max_length=_MAX_NAMES, required=False, default=list)
    tiers = serializers.DictField(
        child=serializers.ChoiceField(choices=[Tier.GPU.value, Tier.CPU.value]),
        required=False,
        allow_null=True,
        default=None,
        help_text="Where each name is in the engine, if the engine tells.",
    )
    tainted = serializers.BooleanField(
        required=False, default=False, help_text="A load failed in this life of the engine."
    )
    poisoned = serializers.BooleanField(required=False, default=False)
    restartable = serializers.BooleanField(required=False, default=False)
    disk = DiskInput(required=False, allow_null=True, default=None)
    sent_at = serializers.DateTimeField(
        required=False, help_text="By the node's own clock: what was overtaken by a newer report changes nothing."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        for name in ("loaded", "on_disk"):
            if name not in attrs and not attrs["unchanged"]:
                raise serializers.ValidationError({name: self.fields[name].error_messages["required"]})
        return attrs


class OutcomeInput(serializers.Serializer[Any]):
    engine_name = serializers.CharField(max_length=200)
    generation = serializers.IntegerField(min_value=1, max_value=2**63 - 1)
    outcome = serializers.ChoiceField(choices=[outcome.value for outcome in Outcome])
    message = serializers.CharField(required=False, allow_blank=True, allow_null=True, default="", max_length=4000)
    error_class = serializers.ChoiceField(
        choices=[error.value for error in ErrorClass], required=False, allow_null=True, default=None
    )
    code = serializers.RegexField(
        r"^[a-z0-9_]*$",
        required=False,
        allow_blank=True,
        default="",
        max_length=40,
        help_text="The agent's own word for what went wrong.",
    )
    timings_ms = serializers.DictField(
        child=serializers.IntegerField(min_value=0, max_value=_MAX_MS), required=False, default=dict
    )
    fetched_bytes = serializers.IntegerField(required=False, default=0, min_value=0, max_value=_MAX_BYTES)
    boot_id = serializers.CharField(required=False, allow_blank=True, allow_null=True, max_length=100)


class DemandInput(serializers.Serializer[Any]):
    version_id = serializers.UUIDField()
    waiting = serializers.IntegerField(
        required=False, default=1, min_value=0, max_value=1_000_000, help_text="How many requests wait for it."
    )
    deadline_ms = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=0,
        max_value=_MAX_MS,
        help_text="How long the last of them waits; without it, as long as the tenant's class of service says.",
    )
    in_flight = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        default=list,
        max_length=200,
        help_text="Versions that answer through this gateway now.",
    )


class EvictionFilters(serializers.Serializer[Any]):
    node = serializers.CharField(required=False, source="node__name")
    tenant = serializers.CharField(required=False, source="version__adapter__tenant__name")
    adapter = serializers.CharField(required=False, source="version__adapter__name")
    version = serializers.CharField(required=False, source="version__name")
    reason = serializers.ChoiceField(required=False, choices=[reason.value for reason in EvictionReason])


class NodeFilters(serializers.Serializer[Any]):
    """Filters of the list of nodes: ``source`` is the lookup that the parameter stands for."""

    status = serializers.ChoiceField(required=False, choices=[status.value for status in NodeStatus])
    engine_kind = serializers.ChoiceField(required=False, choices=[kind.value for kind in EngineKind])
    base_model = serializers.CharField(required=False, source="base_revision__base_model__name")


class UsageFilters(serializers.Serializer[Any]):
    since = serializers.DateTimeField(required=False, help_text="Without it, the day before the end.")
    until = serializers.DateTimeField(required=False, help_text="Without it, now.")
    by = serializers.ChoiceField(
        required=False, choices=[by.value for by in UsageBy], help_text="Without it, by alias."
    )


class TraceFilters(serializers.Serializer[Any]):
    since = serializers.DateTimeField(required=False, help_text="Without it, the day before the end.")
    until = serializers.DateTimeField(required=False, help_text="Without it, now.")
    base_model = serializers.CharField(required=False)
