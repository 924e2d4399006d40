"""Shapes of request bodies of the hub-compatible API. What clients send besides is not needed."""

from typing import Any

from rest_framework import serializers

_MAX_LISTED = 1000


class RepoInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=96)
    organization = serializers.CharField(required=False, allow_null=True, default=None, max_length=63)
    type = serializers.CharField(required=False, allow_null=True, default="model", max_length=20)


class PreuploadFileInput(serializers.Serializer[Any]):
    path = serializers.CharField(trim_whitespace=False, max_length=4096)
    size = serializers.IntegerField(min_value=0, max_value=2**53)


class PreuploadInput(serializers.Serializer[Any]):
    files = serializers.ListField(child=PreuploadFileInput(), max_length=_MAX_LISTED)


class TagInput(serializers.Serializer[Any]):
    tag = serializers.CharField(max_length=64)


class BranchInput(serializers.Serializer[Any]):
    startingPoint = serializers.CharField(required=False, allow_null=True, default=None, max_length=64)  # noqa: N815


class YamlInput(serializers.Serializer[Any]):
    content = serializers.CharField(allow_blank=True, trim_whitespace=False)


class PathsInput(serializers.Serializer[Any]):
    paths = serializers.ListField(child=serializers.CharField(max_length=4096), max_length=_MAX_LISTED)
    expand = serializers.BooleanField(required=False, default=False)
