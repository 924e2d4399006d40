"""Shapes of request bodies. Rules beyond type and presence belong to the services."""

from typing import Any

from rest_framework import serializers


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
