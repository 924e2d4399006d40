from registry.models.adapters import Adapter, Version
from registry.models.approvals import Approval
from registry.models.artifacts import Artifact, VersionFile
from registry.models.audit import AuditRecord
from registry.models.base_models import BaseModel, BaseModelRevision
from registry.models.people import Person
from registry.models.signatures import Signature, SigningKey
from registry.models.tenants import Membership, Tenant
from registry.models.tokens import ApiToken
from registry.models.validations import ValidationReport

__all__ = [
    "Adapter",
    "ApiToken",
    "Approval",
    "Artifact",
    "AuditRecord",
    "BaseModel",
    "BaseModelRevision",
    "Membership",
    "Person",
    "Signature",
    "SigningKey",
    "Tenant",
    "ValidationReport",
    "Version",
    "VersionFile",
]
