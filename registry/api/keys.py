"""Public keys: those that sign for the registry, and those of tenants' pipelines with what they signed."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.inputs import ReasonInput
from registry.api.rest.etags import answer, names_state, require_match
from registry.api.rest.filters import read_filters
from registry.api.rest.pagination import page
from registry.api.rest.schema import listed
from registry.api.rest.views import ApiView
from registry.models import PipelineKey, PipelineSignature, SigningKey, Tenant
from registry.permissions import Action
from registry.selectors import get_tenant, get_version, list_pipeline_keys, list_pipeline_signatures, list_signing_keys
from registry.services.pipeline_signatures import (
    attach_pipeline_signature,
    change_signing_policy,
    register_pipeline_key,
    revoke_pipeline_key,
)
from registry.signing.dsse import MAX_BUNDLE_CHARACTERS

_MAX_PEM = 4096
Document = dict[str, Any]


class PublicKeyAnswer(serializers.Serializer[Any]):
    key_id = serializers.CharField(help_text="SHA-256 of the PEM text.")
    algorithm = serializers.CharField(help_text="ecdsa-p256-sha256")
    public_key = serializers.CharField(help_text="PEM.")
    valid_from = serializers.DateTimeField(help_text="What it signed from here on counts.")
    valid_to = serializers.DateTimeField(allow_null=True, help_text="What it signed from here on does not.")
    revoked_at = serializers.DateTimeField(allow_null=True, help_text="If set, nothing counts that it ever signed.")
    revoked_reason = serializers.CharField()


class PublicKeysAnswer(serializers.Serializer[Any]):
    keys = PublicKeyAnswer(many=True)


class PipelineKeyInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    public_key = serializers.CharField(max_length=_MAX_PEM, help_text="PEM, ECDSA on P-256.")


class PipelineKeyFilters(serializers.Serializer[Any]):
    name = serializers.CharField(required=False)
    active = serializers.BooleanField(required=False, source="revoked_at__isnull", help_text="Not revoked.")


class PipelineKeyAnswer(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    name = serializers.CharField()
    key_id = serializers.CharField(help_text="SHA-256 of the PEM text.")
    public_key = serializers.CharField(help_text="PEM.")
    created_at = serializers.DateTimeField()
    revoked_at = serializers.DateTimeField(allow_null=True)
    revoked_reason = serializers.CharField()


class PipelineSignatureInput(serializers.Serializer[Any]):
    bundle = serializers.CharField(
        max_length=MAX_BUNDLE_CHARACTERS, trim_whitespace=False, help_text="The text that model signing wrote."
    )


class PipelineSignatureAnswer(serializers.Serializer[Any]):
    key = serializers.CharField(help_text="The key's name.")
    key_id = serializers.CharField()
    bundle = serializers.CharField(help_text="Sigstore bundle, JSON as text.")
    attached_by = serializers.CharField(allow_null=True, help_text="E-mail.")
    created_at = serializers.DateTimeField()
    trusted = serializers.BooleanField(help_text="Whether the key is registered and not revoked.")


class SigningPolicyInput(serializers.Serializer[Any]):
    require_pipeline_signature = serializers.BooleanField()


class SigningPolicyAnswer(serializers.Serializer[Any]):
    require_pipeline_signature = serializers.BooleanField(
        help_text="Whether a version needs its pipeline's own signature to be approved."
    )


class KeysView(ApiView):
    """Public keys; open to everybody, so that a signature can be checked without an account."""

    actions = {"get": None}
    authentication_classes = ()

    @extend_schema(operation_id="list_keys", responses={200: PublicKeysAnswer})
    def get(self, request: Request) -> Response:
        return answer({"keys": [key_document(key) for key in list_signing_keys()]}, request)


class PipelineKeysView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "post": Action.MANAGE_TENANT}

    @extend_schema(
        operation_id="list_pipeline_keys", parameters=[PipelineKeyFilters], responses={200: listed(PipelineKeyAnswer)}
    )
    def get(self, request: Request, tenant: str) -> Response:
        keys = list_pipeline_keys(actor=actor_of(request), tenant=tenant)
        wanted = keys.filter(**read_filters(request, PipelineKeyFilters))
        return page(request, wanted, document=pipeline_key_document)

    @extend_schema(operation_id="register_pipeline_key", request=PipelineKeyInput, responses={201: PipelineKeyAnswer})
    def post(self, request: Request, tenant: str) -> Response:
        actor = actor_of(request)
        owner = get_tenant(actor=actor, name=tenant, action=Action.MANAGE_TENANT)
        key = register_pipeline_key(actor=actor, tenant=owner, **read_input(request, PipelineKeyInput))
        return Response(pipeline_key_document(key), status=201)


class PipelineKeyRevocationView(ApiView):
    actions = {"post": Action.MANAGE_TENANT}

    @extend_schema(operation_id="revoke_pipeline_key", request=ReasonInput, responses={200: PipelineKeyAnswer})
    def post(self, request: Request, tenant: str, key_id: str) -> Response:
        actor = actor_of(request)
        owner = get_tenant(actor=actor, name=tenant, action=Action.MANAGE_TENANT)
        key = revoke_pipeline_key(actor=actor, tenant=owner, key_id=key_id, **read_input(request, ReasonInput))
        return Response(pipeline_key_document(key))


class PipelineSignaturesView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "post": Action.UPLOAD_VERSION}

    @extend_schema(operation_id="list_pipeline_signatures", responses={200: listed(PipelineSignatureAnswer)})
    def get(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        found = get_version(actor=actor_of(request), tenant=tenant, adapter=adapter, name=version)
        return page(request, list_pipeline_signatures(version=found), document=pipeline_signature_document)

    @extend_schema(
        operation_id="attach_pipeline_signature",
        request=PipelineSignatureInput,
        responses={201: PipelineSignatureAnswer},
    )
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        actor = actor_of(request)
        found = get_version(actor=actor, tenant=tenant, adapter=adapter, name=version, action=Action.UPLOAD_VERSION)
        made = attach_pipeline_signature(actor=actor, version=found, **read_input(request, PipelineSignatureInput))
        return Response(pipeline_signature_document(made), status=201)


class SigningPolicyView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "put": Action.MANAGE_TENANT}

    @extend_schema(operation_id="get_signing_policy", responses={200: SigningPolicyAnswer})
    def get(self, request: Request, tenant: str) -> Response:
        return answer(signing_policy_document(get_tenant(actor=actor_of(request), name=tenant)), request)

    @extend_schema(
        operation_id="change_signing_policy", request=SigningPolicyInput, responses={200: SigningPolicyAnswer}
    )
    def put(self, request: Request, tenant: str) -> Response:
        actor = actor_of(request)
        owner = get_tenant(actor=actor, name=tenant, action=Action.MANAGE_TENANT)
        body = read_input(request, SigningPolicyInput)
        require_match(request, signing_policy_document(owner))
        expected = owner.require_pipeline_signature if names_state(request) else None
        changed = change_signing_policy(actor=actor, tenant=owner, expected=expected, **body)
        return answer(signing_policy_document(changed), request)


def key_document(key: SigningKey) -> Document:
    return {
        "key_id": key.key_id,
        "algorithm": "ecdsa-p256-sha256",
        "public_key": key.public_pem,
        "valid_from": key.valid_from,
        "valid_to": key.valid_to,
        "revoked_at": key.revoked_at,
        "revoked_reason": key.revoked_reason,
    }


def pipeline_key_document(key: PipelineKey) -> Document:
    return {
        "tenant": key.tenant.name,
        "name": key.name,
        "key_id": key.key_id,
        "public_key": key.public_pem,
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
        "revoked_reason": key.revoked_reason,
    }


def pipeline_signature_document(signature: PipelineSignature) -> Document:
    return {
        "key": signature.key.name,
        "key_id": signature.key.key_id,
        "bundle": signature.bundle,
        "attached_by": signature.attached_by.email if signature.attached_by else None,
        "created_at": signature.created_at,
        "trusted": signature.key.revoked_at is None,
    }


def signing_policy_document(tenant: Tenant) -> Document:
    return {"require_pipeline_signature": tenant.require_pipeline_signature}
