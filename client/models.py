"""What the API answers, as frozen dataclasses. Times are ISO 8601 text, digests lower-case hex SHA-256, sizes bytes."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

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
class PasswordLink:
    """A link by which a person, or whoever has it, sets a password for the site, once and until `expires_at`."""

    email: str
    url: str
    expires_at: str = ""


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
class Holder:
    """A node that still has a version: what it said last, and what it was told to come to."""

    node: str
    observed: str = ""
    desired: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """How many approvals a version has and needs, and who is missing by name."""

    required: int
    given: int
    met: bool
    missing_people: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GivenApproval:
    """One approval; `void` says why it does not count, null if it does."""

    reviewer: str
    at: str
    comment: str = ""
    break_glass: bool = False
    root_digest: str = ""
    validation_digest: str = ""
    base_digest: str = ""
    void: str | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """Where the review of a version stands."""

    required: int
    given: int
    met: bool
    missing_people: tuple[str, ...] = ()
    approvals: tuple[GivenApproval, ...] = ()


@dataclass(frozen=True, slots=True)
class Comment:
    """Something a person said in the review of a version."""

    author: str
    text: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """Whose approvals, and how many, a tenant's versions need; without `validity_days` an approval never expires."""

    required: int
    roles: tuple[str, ...]
    only_people: tuple[str, ...] = ()
    required_people: tuple[str, ...] = ()
    validity_days: int | None = None


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How many days the bytes of an adapter's versions are kept after they were last of use."""

    keep_days: int
    automatic: bool = False
    applied_at: str | None = None


@dataclass(frozen=True, slots=True)
class RetentionEntry:
    """One version in a plan; `keep` says why it is kept, null: its bytes go."""

    version: str
    state: str = ""
    keep: str | None = None


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """What a retention policy would remove now; applying it takes `digest`. `bytes` is what is freed."""

    keep_days: int
    digest: str
    bytes: int = 0
    removed: int = 0
    versions: tuple[RetentionEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Version:
    """An immutable version of an adapter. Digest, rank and engine name are null until they are known.

    `holders` is there in the answers of yank and revoke alone, `review` in those of the inbox.
    """

    id: str
    tenant: str
    adapter: str
    name: str
    state: str
    base_model: str = ""
    base_revision: str = ""
    base_digest: str | None = None
    root_digest: str | None = None
    validation_digest: str = ""
    engine_name: str | None = None
    rank: int | None = None
    target_modules: tuple[str, ...] = ()
    files: tuple[VersionFile, ...] = ()
    uploader: str | JsonObject | None = None
    created_at: str = ""
    state_message: str = ""
    approvals: tuple[JsonObject, ...] = ()
    lineage: JsonObject = field(default_factory=dict)
    purged_at: str | None = None
    holders: tuple[Holder, ...] = ()
    review: Standing | None = None

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
    """Where one file of a new version goes; `stored` files need no transfer, those with `part_bytes` go in parts."""

    path: str
    url: str
    method: str = "PUT"
    headers: dict[str, str] = field(default_factory=dict)
    stored: bool = False
    part_bytes: int | None = None


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
        """Return the checks that failed, then those that warn; what was not checked is no reason for anything."""
        ranked = {"fail": 0, "warn": 1}
        found = (c for c in self.checks if c.verdict in ranked and c.code != "not_checked")
        return tuple(sorted(found, key=lambda c: ranked[c.verdict]))


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """One report of a version; `is_decisive` is the one that the version stands on."""

    verdict: str
    digest: str
    policy_version: str = ""
    created_at: str = ""
    is_decisive: bool = False


@dataclass(frozen=True, slots=True)
class Revalidation:
    """A wish to have a version checked again; `report` is the digest of what came of it, when it has."""

    requested_by: str
    requested_at: str = ""
    reason: str = ""
    finished_at: str | None = None
    report: str | None = None


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """What versions are asked: those of one adapter, or (null) of every adapter without a set of its own."""

    name: str
    tenant: str = ""
    adapter: str | None = None
    count: int = 0
    digest: str = ""
    created_at: str = ""
    changed_at: str = ""
    examples: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class EvaluationGates:
    """What versions keep to; null leaves a gate open. Enforcement is reject or warn."""

    enforcement: str = "reject"
    max_perplexity: float | None = None
    min_exact_agreement: float | None = None
    min_token_agreement: float | None = None
    max_forbidden_hits: float | None = None
    max_mean_kl: float | None = None
    max_perplexity_increase: float | None = None
    max_exact_agreement_drop: float | None = None
    max_token_agreement_drop: float | None = None
    max_forbidden_hits_increase: float | None = None
    max_mean_kl_increase: float | None = None

    @property
    def bounds(self) -> dict[str, float | None]:
        """Return every gate's bound by its name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "enforcement"}


@dataclass(frozen=True, slots=True)
class Signature:
    """Signature bundle and attestation of a version as JSON text, and the public key (PEM) that made them."""

    bundle: str
    attestation: str
    key_id: str = ""
    public_key: str = ""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public signing key (PEM) with the time in which it signs; nothing counts that a revoked key signed."""

    key_id: str
    public_key: str
    valid_from: str | None = None
    valid_to: str | None = None
    revoked_at: str | None = None
    revoked_reason: str = ""


@dataclass(frozen=True, slots=True)
class PipelineKey:
    """A pipeline's public key (PEM) that a tenant registered."""

    tenant: str
    name: str
    key_id: str
    public_key: str
    created_at: str | None = None
    revoked_at: str | None = None
    revoked_reason: str = ""


@dataclass(frozen=True, slots=True)
class PipelineSignature:
    """A bundle (JSON text) over a version's files by the pipeline's key named `key`, trusted until that is revoked."""

    key: str
    key_id: str
    bundle: str
    attached_by: str | None = None
    created_at: str | None = None
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class AliasSplit:
    """Which requests of an alias a candidate answers, or a shadow copies; shares in basis points, 10,000 are all."""

    adapter: str
    version: str
    version_id: str = ""
    basis_points: int = 0
    salt: str = ""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    shadow_adapter: str | None = None
    shadow_version: str | None = None
    shadow_version_id: str | None = None
    shadow_basis_points: int = 0
    changed_at: str = ""
    revoked_at: str | None = None


@dataclass(frozen=True, slots=True)
class AliasProtection:
    """Who alone may move an alias (nobody named: by role), and whether only a release does."""

    movers: tuple[str, ...] = ()
    needs_release: bool = True
    changed_at: str = ""


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
    split: AliasSplit | None = None
    protection: AliasProtection | None = None

    @property
    def target(self) -> str:
        """Return `tenant/adapter@version`."""
        return f"{self.tenant}/{self.adapter}@{self.version}"


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
    source: str = ""
    how: str = ""


@dataclass(frozen=True, slots=True)
class AuditCheckpoint:
    """Where a signed checkpoint of an audit log lies; the hash of record `seq` was `head` when it was signed."""

    chain: str
    seq: int
    head: str
    object_key: str
    sha256: str
    key_id: str
    locked_until: str | None = None
    created_at: str | None = None
