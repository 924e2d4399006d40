"""Shapes of request bodies. Rules beyond type and presence belong to the services."""

import json
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from registry.states import Role, Scope, TokenKind

_MAX_LINEAGE = 64 * 1024


class TenantInput(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField(required=False, default="", allow_blank=True, max_length=200)


class MemberInput(serializers.Serializer[Any]):
    email = serializers.CharField(max_length=254)
    role = serializers.ChoiceField(choices=[role.value for role in Role])
    name = serializers.CharField(required=False, default="", allow_blank=True, max_length=200)


class TokenInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    kind = serializers.ChoiceField(choices=[TokenKind.PERSON.value, TokenKind.APPLICATION.value])
    person_email = serializers.CharField(required=False, allow_null=True, default=None, max_length=254)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=[scope.value for scope in Scope]), allow_empty=False
    )
    expires_in_days = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=0, max_value=3650
    )


class BaseRevisionInput(serializers.Serializer[Any]):
    name = serializers.CharField()
    revision = serializers.CharField()
    description = serializers.JSONField()
    max_rank = serializers.IntegerField(min_value=1, max_value=4096)


class AdapterInput(serializers.Serializer[Any]):
    name = serializers.CharField()
    base_model = serializers.CharField()
    description = serializers.CharField(required=False, default="", allow_blank=True, max_length=4000)


class FileInput(serializers.Serializer[Any]):
    path = serializers.CharField(trim_whitespace=False, max_length=4096)
    size = serializers.IntegerField(min_value=0, max_value=2**53)
    sha256 = serializers.CharField(max_length=64)


class VersionInput(serializers.Serializer[Any]):
    name = serializers.CharField(required=False, allow_null=True, default=None)
    base_revision = serializers.CharField()
    files = FileInput(many=True)
    lineage = serializers.DictField(required=False, default=dict)

    def validate_lineage(self, value: dict[str, Any]) -> dict[str, Any]:
        if len(json.dumps(value)) > _MAX_LINEAGE:
            raise serializers.ValidationError(_("The lineage is longer than %(most)d bytes.") % {"most": _MAX_LINEAGE})
        return value


class ApprovalInput(serializers.Serializer[Any]):
    digest = serializers.CharField(max_length=64)
    comment = serializers.CharField(required=False, default="", allow_blank=True, max_length=4000)


class ReasonInput(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=4000)


class AfterSeqInput(serializers.Serializer[Any]):
    after_seq = serializers.IntegerField(required=False, default=0, min_value=0)
