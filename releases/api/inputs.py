"""Shapes of request bodies. Rules beyond type and presence belong to the services."""

from typing import Any

from rest_framework import serializers

from releases.states import MoveKind


class AliasInput(serializers.Serializer[Any]):
    adapter = serializers.CharField()
    version = serializers.CharField()
    expected_revision = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=0, max_value=2**31 - 1
    )
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=4000)


class RollbackInput(serializers.Serializer[Any]):
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=4000)
    from_revision = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=2**31 - 1
    )


# Filters of lists: ``source`` is the lookup that the parameter stands for.
class AliasFilters(serializers.Serializer[Any]):
    adapter = serializers.CharField(required=False, source="adapter__name")
    version = serializers.CharField(required=False, source="version__name")


class AliasHistoryFilters(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(required=False, choices=[kind.value for kind in MoveKind])
    version = serializers.CharField(required=False, source="version__name")
