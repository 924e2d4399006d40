from registry.models.adapters import Adapter, Version
from registry.models.approvals import Approval, VersionComment
from registry.models.artifacts import Artifact, UploadInParts, VersionFile
from registry.models.audit import AuditCheck, AuditCheckpoint, AuditNotice, AuditRecord
from registry.models.base_models import BaseModel, BaseModelRevision
from registry.models.evaluations import EvaluationGates, EvaluationSet
from registry.models.hub import HubCommit, HubDraft, HubFile
from registry.models.idempotency import IdempotentAnswer
from registry.models.people import Person
from registry.models.policies import ApprovalPolicy, RetentionPolicy
from registry.models.signatures import PipelineKey, PipelineSignature, Signature, SigningKey
from registry.models.tenants import Membership, Tenant
from registry.models.tokens import ApiToken
from registry.models.validations import Revalidation, ValidationReport
from registry.models.webhooks import WebhookAttempt, WebhookCursor, WebhookDelivery, WebhookEndpoint

__all__ = [
    "Adapter",
    "ApiToken",
    "Approval",
    "ApprovalPolicy",
    "Artifact",
    "AuditCheck",
    "AuditCheckpoint",
    "AuditNotice",
    "AuditRecord",
    "BaseModel",
    "BaseModelRevision",
    "EvaluationGates",
    "EvaluationSet",
    "HubCommit",
    "HubDraft",
    "HubFile",
    "IdempotentAnswer",
    "Membership",
    "Person",
    "PipelineKey",
    "PipelineSignature",
    "RetentionPolicy",
    "Revalidation",
    "Signature",
    "SigningKey",
    "Tenant",
    "UploadInParts",
    "ValidationReport",
    "Version",
    "VersionComment",
    "VersionFile",
    "WebhookAttempt",
    "WebhookCursor",
    "WebhookDelivery",
    "WebhookEndpoint",
]
