"""Shapes of answers, for the OpenAPI document. What is really answered is made in ``documents``; a test compares."""

from typing import Any

from rest_framework import serializers

from registry.states import Role, Scope, TokenKind, VersionState


class TenantAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField()
    created_at = serializers.DateTimeField()


class MemberAnswer(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    email = serializers.CharField()
    name = serializers.CharField()
    role = serializers.ChoiceField(choices=[role.value for role in Role])


class TokenAnswer(serializers.Serializer[Any]):
    prefix = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=[kind.value for kind in TokenKind])
    person_email = serializers.CharField(allow_null=True)
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=[scope.value for scope in Scope]))
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewTokenAnswer(TokenAnswer):
    token = serializers.CharField(help_text="The token itself; told this once.")


class PersonAnswer(serializers.Serializer[Any]):
    email = serializers.CharField()
    name = serializers.CharField()


class WhoAmIAnswer(serializers.Serializer[Any]):
    person = PersonAnswer(allow_null=True)
    kind = serializers.ChoiceField(choices=["person", "application", "gateway", "node", "monitor", "system"])
    tenant = serializers.CharField(allow_null=True, help_text="The one tenant that the token belongs to, if any.")
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=[scope.value for scope in Scope]))
    roles = serializers.DictField(
        child=serializers.ListField(child=serializers.ChoiceField(choices=[role.value for role in Role])),
        help_text="Roles by tenant.",
    )
    is_platform_admin = serializers.BooleanField()


class BaseRevisionAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    revision = serializers.CharField()
    digest = serializers.CharField()
    max_rank = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class DescribedBaseRevisionAnswer(BaseRevisionAnswer):
    description = serializers.DictField()


class BaseModelAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    revisions = BaseRevisionAnswer(many=True)


class AdapterAnswer(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    name = serializers.CharField()
    base_model = serializers.CharField()
    description = serializers.CharField()
    created_at = serializers.DateTimeField()


class VersionFileAnswer(serializers.Serializer[Any]):
    path = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes.")
    sha256 = serializers.CharField()


class ApprovalAnswer(serializers.Serializer[Any]):
    reviewer = serializers.CharField()
    decision = serializers.CharField()
    break_glass = serializers.BooleanField(help_text="A platform admin approved alone.")
    current = serializers.BooleanField(help_text="Whether the version still has the report that was decided on.")
    comment = serializers.CharField()
    at = serializers.DateTimeField()


class VersionAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    tenant = serializers.CharField()
    adapter = serializers.CharField()
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=[state.value for state in VersionState])
    state_message = serializers.CharField()
    base_model = serializers.CharField()
    base_revision = serializers.CharField()
    base_digest = serializers.CharField()
    root_digest = serializers.CharField()
    validation_digest = serializers.CharField()
    engine_name = serializers.CharField()
    rank = serializers.IntegerField(allow_null=True)
    target_modules = serializers.ListField(child=serializers.CharField())
    files = VersionFileAnswer(many=True)
    uploader = serializers.CharField()
    created_at = serializers.DateTimeField()
    lineage = serializers.DictField()
    purged_at = serializers.DateTimeField(allow_null=True, help_text="When retention removed its files, if it did.")
    approvals = ApprovalAnswer(many=True)


class UploadTargetAnswer(serializers.Serializer[Any]):
    path = serializers.CharField()
    method = serializers.CharField()
    url = serializers.CharField()
    headers = serializers.DictField(child=serializers.CharField())
    stored = serializers.BooleanField(help_text="The store has this file already: nothing to send.")
    part_bytes = serializers.IntegerField(
        allow_null=True, help_text="A large file may go in parts of so many bytes instead; null for the others."
    )


class UploadAnswer(VersionAnswer):
    uploads = UploadTargetAnswer(many=True)


class ArrivedPartAnswer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField()


class PartAddressAnswer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    method = serializers.CharField()
    url = serializers.CharField()
    headers = serializers.DictField(child=serializers.CharField())


class PartsAnswer(serializers.Serializer[Any]):
    path = serializers.CharField()
    size = serializers.IntegerField()
    part_bytes = serializers.IntegerField(help_text="Size of every part but the last.")
    stored = serializers.BooleanField(help_text="The whole file is stored: nothing is left to do.")
    arrived = ArrivedPartAnswer(many=True)
    addresses = PartAddressAnswer(many=True, help_text="Presigned requests for the parts that were asked for.")


class CheckAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    verdict = serializers.CharField(help_text="pass, warn or fail.")
    code = serializers.CharField(help_text="What was found, for programs.")
    message = serializers.CharField(help_text="What was found and what to do, for people.")
    evidence = serializers.DictField()
    measured = serializers.DictField(required=False, help_text="What another run would find different.")


class ReportAnswer(serializers.Serializer[Any]):
    policy_version = serializers.CharField()
    verdict = serializers.ChoiceField(choices=["accept", "warn", "reject"])
    checks = CheckAnswer(many=True)
    facts = serializers.DictField(help_text="What the files say of the adapter.")
    digest = serializers.CharField()
    created_at = serializers.DateTimeField()


class SignatureAnswer(serializers.Serializer[Any]):
    bundle = serializers.CharField(help_text="Sigstore bundle, JSON as text.")
    attestation = serializers.CharField(help_text="In-toto attestation, JSON as text.")
    key_id = serializers.CharField()
    public_key = serializers.CharField()
