"""Shapes of answers, for the OpenAPI document. What is really answered is made in ``documents``; a test compares."""

from typing import Any

from rest_framework import serializers

from releases.states import MoveKind


class AliasAnswer(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    name = serializers.CharField()
    adapter = serializers.CharField()
    version = serializers.CharField()
    version_id = serializers.UUIDField()
    revision = serializers.IntegerField()
    updated_at = serializers.DateTimeField()


class MoverAnswer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    id = serializers.CharField()
    name = serializers.CharField()


class AliasRevisionAnswer(serializers.Serializer[Any]):
    revision = serializers.IntegerField()
    adapter = serializers.CharField()
    version = serializers.CharField()
    previous_version = serializers.CharField(allow_null=True)
    kind = serializers.ChoiceField(choices=[kind.value for kind in MoveKind])
    actor = MoverAnswer()
    reason = serializers.CharField()
    at = serializers.DateTimeField()
