"""What the API answers, as frozen dataclasses. Times are ISO 8601 text, digests lower-case hex SHA-256, sizes bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

JsonObject = dict[str, object]
UNSETTLED_STATES = frozenset({"uploading", "validating"})


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a token stands for, and what it may do."""

    scopes: tuple[str, ...] = ()
    kind: str = ""
    person: Person | None = None
    tenant: str | None = None
    roles: dict[str, tuple[str, ...]] = field(default_factory=dict)
    is_platform_admin: bool = False


@dataclass(frozen=True, slots=True)
class Person:
    """A person with a name and an e-mail address."""

    email: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant: the owner of adapters, aliases and people's roles."""

    name: str
    title: str = ""
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """One role of one person in a tenant."""

    email: str
    role: str
    name: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Token:
    """An API token; `token` is its text and is there only in the answer that created it."""

    prefix: str
    name: str = ""
    kind: str = ""
    scopes: tuple[str, ...] = ()
    person_email: str | None = None
    created_at: str = ""
    expires_at: str | None = None
    last_used_at: str | None = None
    revoked_at: str | None = None
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class BaseModelRevision:
    """A pinned base model: adapters fit one digest, never a name alone."""

    name: str
    revision: str
    digest: str
    max_rank: int | None = None
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class BaseModel:
    """A base model with its registered revisions."""

    name: str
    revisions: tuple[BaseModelRevision, ...] = ()


@dataclass(frozen=True, slots=True)
class Adapter:
    """A named line of weights of one tenant."""

    name: str
    base_model: str
    tenant: str = ""
    description: str = ""
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class VersionFile:
    """One file of a version: path inside it, size in bytes, hex SHA-256."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Version:
    """An immutable version of an adapter. Digest, rank and engine name are null until they are known."""

    id: str
    tenant: str
    adapter: str
    name: str
    state: str
    base_model: str = ""
    base_revision: str = ""
    base_digest: str | None = None
    root_digest: str | None = None
    engine_name: str | None = None
    rank: int | None = None
    target_modules: tuple[str, ...] = ()
    files: tuple[VersionFile, ...] = ()
    uploader: str | JsonObject | None = None
    created_at: str = ""
    state_message: str = ""
    approvals: tuple[JsonObject, ...] = ()
    lineage: JsonObject = field(default_factory=dict)

    @property
    def ref(self) -> str:
        """Return `tenant/adapter@version`."""
        return f"{self.tenant}/{self.adapter}@{self.name}"

    @property
    def settled(self) -> bool:
        """Say whether upload and validation are over."""
        return self.state not in UNSETTLED_STATES


@dataclass(frozen=True, slots=True)
class Upload:
    """Where one file of a new version goes; `stored` files need no transfer."""

    path: str
    url: str
    method: str = "PUT"
    headers: dict[str, str] = field(default_factory=dict)
    stored: bool = False


@dataclass(frozen=True, slots=True)
class VersionUpload:
    """A version in state uploading with the places for its files."""

    version: Version
    uploads: tuple[Upload, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a validation: `verdict` is pass, warn or fail."""

    name: str
    verdict: str
    code: str = ""
    message: str = ""
    evidence: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """What validation found: `verdict` is accept, warn or reject."""

    verdict: str
    checks: tuple[Check, ...] = ()
    facts: JsonObject = field(default_factory=dict)
    policy_version: str | int = ""
    digest: str = ""

    @property
    def reasons(self) -> tuple[Check, ...]:
        """Return the checks that failed, then those that warn."""
        ranked = {"fail": 0, "warn": 1}
        return tuple(sorted((c for c in self.checks if c.verdict in ranked), key=lambda c: ranked[c.verdict]))


@dataclass(frozen=True, slots=True)
class Signature:
    """Signature bundle and attestation of a version as JSON text, and the public key (PEM) that made them."""

    bundle: str
    attestation: str
    key_id: str = ""
    public_key: str = ""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public signing key (PEM) with the time it was in use."""

    key_id: str
    public_key: str
    valid_from: str | None = None
    valid_to: str | None = None


@dataclass(frozen=True, slots=True)
class Alias:
    """A stable name and the version it points at now."""

    tenant: str
    name: str
    adapter: str
    version: str
    version_id: str = ""
    revision: int = 0
    updated_at: str = ""

    @property
    def target(self) -> str:
        """Return `tenant/adapter@version`."""
        return f"{self.tenant}/{self.adapter}@{self.version}"


@dataclass(frozen=True, slots=True)
class AliasRevision:
    """One row of an alias's history; `kind` is set, move or rollback."""

    revision: int
    adapter: str
    version: str
    kind: str
    previous_version: str | None = None
    actor: str | JsonObject | None = None
    reason: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Residency:
    """Where one version sits on one node: desired and observed tier."""

    node: str
    tenant: str
    adapter: str
    version: str
    desired: str
    observed: str
    version_id: str = ""
    engine_name: str = ""
    generation: int = 0
    message: str = ""
    load_ms: int | float | None = None
    updated_at: str = ""

    @property
    def ref(self) -> str:
        """Return `tenant/adapter@version`."""
        return f"{self.tenant}/{self.adapter}@{self.version}"


@dataclass(frozen=True, slots=True)
class Node:
    """A serving node; `token` is there only in the answers that issued it."""

    name: str
    engine_kind: str = ""
    engine_url: str = ""
    base_model: str = ""
    base_revision: str = ""
    gpu_slots: int = 0
    cpu_slots: int = 0
    max_rank: int = 0
    disk_bytes: int = 0
    status: str = ""
    boot_id: str | None = None
    last_seen_at: str | None = None
    residencies: tuple[Residency, ...] = ()
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One record of a tenant's audit log; `payload` is the canonical text that `hash` covers."""

    seq: int
    at: str
    actor: JsonObject
    action: str
    object: JsonObject
    prev_hash: str
    hash: str
    payload: str
    before: JsonObject | None = None
    after: JsonObject | None = None
    reason: str = ""
    request_id: str = ""
