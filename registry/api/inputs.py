"""Shapes of request bodies. Rules beyond type and presence belong to the services."""

from typing import Any

from rest_framework import serializers

from registry.lineage import read_bounds
from registry.states import Role, Scope, TokenKind, VersionState
from registry.stores.parts import MAX_PARTS

_IN_LINEAGE = ("training_data_digest", "run_url", "git_commit", "parent_version")
_LOWER_CASE = frozenset({"training_data_digest", "git_commit"})


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
    lineage = serializers.DictField(
        required=False,
        default=dict,
        help_text="training_data_digest, run_url, git_commit, metrics, parent_version; anything else below extra.",
    )


class PartInput(serializers.Serializer[Any]):
    number = serializers.IntegerField(min_value=1, max_value=MAX_PARTS)
    sha256 = serializers.CharField(max_length=64)


class PartsInput(serializers.Serializer[Any]):
    path = serializers.CharField(trim_whitespace=False, max_length=4096)
    parts = PartInput(many=True, required=False, default=list, help_text="Those that addresses are wanted for.")


class FilePathInput(serializers.Serializer[Any]):
    path = serializers.CharField(trim_whitespace=False, max_length=4096)


class ApprovalInput(serializers.Serializer[Any]):
    digest = serializers.CharField(max_length=64, help_text="`root_digest` of what is approved.")
    validation_digest = serializers.CharField(
        required=False,
        allow_null=True,
        default=None,
        max_length=64,
        help_text="The report that was looked at: refused if the version has another by now.",
    )
    comment = serializers.CharField(required=False, default="", allow_blank=True, max_length=4000)


class ReasonInput(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=4000)


# Filters of lists: ``source`` is the lookup that the parameter stands for.
class TenantFilters(serializers.Serializer[Any]):
    name = serializers.CharField(required=False)


class MemberFilters(serializers.Serializer[Any]):
    email = serializers.CharField(required=False, source="person__email")
    role = serializers.ChoiceField(required=False, choices=[role.value for role in Role])


class TokenFilters(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(required=False, choices=[kind.value for kind in TokenKind])
    person_email = serializers.CharField(required=False, source="person__email")
    active = serializers.BooleanField(required=False, source="revoked_at__isnull", help_text="Not revoked.")


class BaseModelFilters(serializers.Serializer[Any]):
    name = serializers.CharField(required=False)


class AdapterFilters(serializers.Serializer[Any]):
    name = serializers.CharField(required=False)
    base_model = serializers.CharField(required=False, source="base_model__name")


class VersionFilters(serializers.Serializer[Any]):
    state = serializers.ChoiceField(required=False, choices=[state.value for state in VersionState])
    uploader = serializers.CharField(required=False, source="uploader__email", help_text="Who pushed it: an e-mail.")
    base_revision = serializers.CharField(required=False, source="base_revision__label")
    training_data_digest = serializers.RegexField(r"^[0-9a-fA-F]{64}\Z", required=False)
    run_url = serializers.CharField(required=False)
    git_commit = serializers.RegexField(r"^(?:[0-9a-fA-F]{40}|[0-9a-fA-F]{64})\Z", required=False)
    parent_version = serializers.RegexField(r"^[^@]+@[^@]+\Z", required=False, help_text="ADAPTER@VERSION")
    metric = serializers.CharField(
        required=False, max_length=1000, help_text="Bounds of metrics, such as `eval_loss<2,accuracy>=0.9`."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Put what is looked for in the lineage together, as ``narrow_versions`` takes it."""
        lineage = {key: attrs.pop(key) for key in _IN_LINEAGE if key in attrs}
        for key in _LOWER_CASE & lineage.keys():
            lineage[key] = lineage[key].lower()
        bounds = read_bounds(attrs.pop("metric")) if "metric" in attrs else ()
        return {**attrs, "lineage": lineage, "bounds": bounds}


class TenantVersionFilters(VersionFilters):
    adapter = serializers.CharField(required=False, source="adapter__name")
