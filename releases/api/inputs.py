"""Shapes of request bodies. Rules beyond type and presence belong to the services."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from registry.documents.read import MAX_CHARACTERS
from releases.states import ACTIVE_STATES, ENDED_STATES, MoveKind, ReleaseState


class AliasInput(serializers.Serializer[Any]):
    adapter = serializers.CharField()
    version = serializers.CharField()
    expected_revision = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=0, max_value=2**31 - 1
    )
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=4000)


def _share() -> serializers.IntegerField:
    return serializers.IntegerField(required=False, default=0, min_value=0, max_value=10_000)


def _names() -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(max_length=63), required=False, default=list)


class SplitInput(serializers.Serializer[Any]):
    """The candidate is ``adapter`` and ``version``; shares are in basis points, of which 10,000 are all."""

    adapter = serializers.CharField()
    version = serializers.CharField()
    basis_points = _share()
    allow = _names()
    deny = _names()
    shadow_adapter = serializers.CharField(required=False, allow_null=True, default=None)
    shadow_version = serializers.CharField(required=False, allow_null=True, default=None)
    shadow_basis_points = _share()
    expected_revision = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=2**31 - 1
    )
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=4000)


class EndFilters(serializers.Serializer[Any]):
    """What goes with an end of a split or a grant, as a query parameter: a request that deletes has no body."""

    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=500)


class ProtectionInput(serializers.Serializer[Any]):
    movers = serializers.ListField(
        child=serializers.EmailField(), required=False, default=list, help_text="E-mails; empty: everybody by role."
    )
    needs_release = serializers.BooleanField(required=False, default=True)


class GrantInput(serializers.Serializer[Any]):
    tenant = serializers.CharField(max_length=63, help_text="Who may call the alias.")
    name = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=63,
        help_text="By which name; default: the alias's own.",
    )
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=4000)


class RollbackInput(serializers.Serializer[Any]):
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=4000)
    from_revision = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=2**31 - 1
    )


def _text() -> serializers.CharField:
    return serializers.CharField(required=False, default="", allow_blank=True, max_length=4000)


def _revision(meaning: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=2**31 - 1, help_text=meaning
    )


class ReleaseInput(serializers.Serializer[Any]):
    """The candidate is ``adapter`` and ``version``; the plan is a template's, or written out."""

    adapter = serializers.CharField()
    version = serializers.CharField()
    template = serializers.CharField(
        required=False, allow_null=True, default=None, max_length=63, help_text="Its name; without a plan `default`."
    )
    plan_text = serializers.CharField(
        required=False,
        allow_null=True,
        default=None,
        max_length=MAX_CHARACTERS,
        trim_whitespace=False,
        help_text="A plan as YAML instead; see docs/releases.md.",
    )
    reason = _text()
    expected_revision = _revision("The alias's: refused if it was moved since.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Either names a template or writes a plan."""
        if attrs["template"] is not None and attrs["plan_text"] is not None:
            raise serializers.ValidationError({"plan_text": _("A plan is written out or a template's, not both.")})
        return attrs


class ReleaseApprovalInput(serializers.Serializer[Any]):
    digest = serializers.CharField(max_length=64, help_text="`digest` of the release that was looked at.")
    comment = _text()


class ReleaseVerbInput(serializers.Serializer[Any]):
    reason = _text()
    expected_revision = _revision("The release's: refused if it was changed since.")


class ReleaseRollbackInput(serializers.Serializer[Any]):
    reason = _text()


class ReleaseTemplateInput(serializers.Serializer[Any]):
    text = serializers.CharField(
        max_length=MAX_CHARACTERS, trim_whitespace=False, help_text="The plan as YAML; see docs/releases.md."
    )


# Filters of lists: ``source`` is the lookup that the parameter stands for.
class AliasFilters(serializers.Serializer[Any]):
    adapter = serializers.CharField(required=False, source="adapter__name")
    version = serializers.CharField(required=False, source="version__name")


class AliasHistoryFilters(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(required=False, choices=[kind.value for kind in MoveKind])
    version = serializers.CharField(required=False, source="version__name")
    at = serializers.DateTimeField(required=False, help_text="What the alias stood for at that time, and nothing else.")


class ReleaseFilters(serializers.Serializer[Any]):
    alias = serializers.CharField(required=False, source="alias__name")
    state = serializers.ChoiceField(required=False, choices=[state.value for state in ReleaseState])
    active = serializers.BooleanField(required=False, help_text="Not over: not promoted, aborted or rolled back.")
    adapter = serializers.CharField(required=False, source="candidate__adapter__name", help_text="The candidate's.")
    version = serializers.CharField(required=False, source="candidate__name", help_text="The candidate's.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Put ``active`` as a lookup."""
        if "active" in attrs:
            attrs["state__in"] = sorted(ACTIVE_STATES if attrs.pop("active") else ENDED_STATES)
        return attrs


class TemplateFilters(serializers.Serializer[Any]):
    number = serializers.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1, help_text="An edition; without it the one in use."
    )
