"""Plain functions that make registry objects with unique names. They need the database and write no audit records."""

import hashlib
import itertools
from collections.abc import Iterable
from typing import Any

from django.utils import timezone

from registry import naming
from registry.actors import Actor
from registry.models import (
    Adapter,
    Approval,
    Artifact,
    BaseModel,
    BaseModelRevision,
    Membership,
    Person,
    Signature,
    SigningKey,
    Tenant,
    Version,
    VersionFile,
)
from registry.signing import manifest
from registry.states import Decision, Role, Scope, VersionState
from registry.transitions import move_version

_numbers = itertools.count(1)

# How a version legitimately comes to each state.
_WAYS: dict[VersionState, tuple[VersionState, ...]] = {
    VersionState.UPLOADING: (),
    VersionState.VALIDATING: (VersionState.VALIDATING,),
    VersionState.REJECTED: (VersionState.VALIDATING, VersionState.REJECTED),
    VersionState.CANDIDATE: (VersionState.VALIDATING, VersionState.CANDIDATE),
    VersionState.APPROVED: (VersionState.VALIDATING, VersionState.CANDIDATE, VersionState.APPROVED),
    VersionState.YANKED: (
        VersionState.VALIDATING,
        VersionState.CANDIDATE,
        VersionState.APPROVED,
        VersionState.YANKED,
    ),
    VersionState.REVOKED: (
        VersionState.VALIDATING,
        VersionState.CANDIDATE,
        VersionState.APPROVED,
        VersionState.REVOKED,
    ),
}


def next_name(word: str) -> str:
    """A name that no other object of this test process has: ``tenant-17``."""
    return f"{word}-{next(_numbers)}"


def digest_for(text: str) -> str:
    """SHA-256 hex of ``text``: a digest that looks like one."""
    return hashlib.sha256(text.encode()).hexdigest()


def make_tenant(*, name: str | None = None, title: str = "") -> Tenant:
    return Tenant.objects.create(name=name or next_name("tenant"), title=title)


def make_person(
    *,
    roles: dict[Tenant, Iterable[Role]] | None = None,
    email: str | None = None,
    is_platform_admin: bool = False,
) -> Person:
    """A person with the given roles in the given tenants."""
    name = next_name("person")
    person = Person.objects.create(
        email=email or f"{name}@example.com", name=name.title(), is_platform_admin=is_platform_admin
    )
    for tenant, held in (roles or {}).items():
        for role in held:
            Membership.objects.create(person=person, tenant=tenant, role=role.value)
    return person


def make_actor(person: Person | None = None, *, scopes: Iterable[Scope] = frozenset(Scope), **facts: Any) -> Actor:
    """The actor a token of ``person`` with ``scopes`` would give; without a person, a system actor."""
    if person is None:
        return Actor(**{"kind": "system", "id": "test", "name": "test", "scopes": frozenset(scopes), **facts})
    roles: dict[int, frozenset[Role]] = {}
    for membership in Membership.objects.filter(person=person):
        roles[membership.tenant_id] = roles.get(membership.tenant_id, frozenset()) | {Role(membership.role)}
    return Actor(
        **{
            "kind": "person",
            "id": person.email,
            "name": person.name,
            "person_id": person.pk,
            "scopes": frozenset(scopes),
            "roles": roles,
            "is_platform_admin": person.is_platform_admin,
            **facts,
        }
    )


def make_member(tenant: Tenant, *roles: Role) -> Actor:
    """The actor of a new person with ``roles`` in ``tenant`` and a token that has every scope."""
    return make_actor(make_person(roles={tenant: roles}))


def make_base_revision(
    *,
    base_model: BaseModel | None = None,
    label: str = "main",
    max_rank: int = 64,
    description: dict[str, Any] | None = None,
    digest: str | None = None,
) -> BaseModelRevision:
    base_model = base_model or BaseModel.objects.create(name=next_name("base"))
    return BaseModelRevision.objects.create(
        base_model=base_model,
        label=label,
        digest=digest or digest_for(f"{base_model.name}@{label}"),
        description=description or {},
        max_rank=max_rank,
    )


def make_adapter(
    *, tenant: Tenant | None = None, base_model: BaseModel | None = None, name: str | None = None
) -> Adapter:
    return Adapter.objects.create(
        tenant=tenant or make_tenant(),
        name=name or next_name("adapter"),
        base_model=base_model or make_base_revision().base_model,
    )


def make_signing_key() -> SigningKey:
    """The one public key that factories sign with; its PEM is not a real one."""
    key, _created = SigningKey.objects.get_or_create(
        key_id=digest_for("key"), defaults={"public_pem": "not a real key", "valid_from": timezone.now()}
    )
    return key


def make_version(
    *,
    state: VersionState = VersionState.APPROVED,
    adapter: Adapter | None = None,
    base_revision: BaseModelRevision | None = None,
    uploader: Person | None = None,
    reviewer: Person | None = None,
    name: str | None = None,
    rank: int = 8,
    files: dict[str, bytes] | None = None,
    lineage: dict[str, Any] | None = None,
) -> Version:
    """A version brought to ``state`` through the allowed moves, with files, approval and signature where they belong.

    The signature's texts are placeholders: they say which version they belong to and verify nothing.
    """
    adapter = adapter or make_adapter()
    base_revision = base_revision or _base_revision_of(adapter)
    version = _start_upload(
        adapter=adapter,
        base_revision=base_revision,
        uploader=uploader or make_person(),
        name=name or next_name("v"),
        files=files or {"adapter_config.json": b"{}", "adapter_model.safetensors": b"weights"},
        lineage=lineage or {},
    )
    was = VersionState.UPLOADING
    for to in _WAYS[state]:
        if to is VersionState.APPROVED:
            make_approval(version, reviewer=reviewer)
            make_signature(version)
        facts: dict[str, Any] = {}
        if to is VersionState.CANDIDATE:
            facts = {"rank": rank, "target_modules": ["q_proj"], "validation_digest": digest_for(f"{version} is fine")}
        move_version(version, was=was, to=to, **facts)
        was = to
    return version


def make_approval(version: Version, *, reviewer: Person | None = None) -> Approval:
    return Approval.objects.create(
        version=version,
        reviewer=reviewer or make_person(),
        decision=Decision.APPROVED.value,
        root_digest=version.root_digest,
        validation_digest=version.validation_digest,
        base_digest=version.base_revision.digest,
    )


def make_signature(version: Version) -> Signature:
    return Signature.objects.create(
        version=version,
        key=make_signing_key(),
        root_digest=version.root_digest,
        bundle=f'{{"bundle_of":"{version.pk}"}}',
        attestation=f'{{"attestation_of":"{version.pk}"}}',
    )


def _base_revision_of(adapter: Adapter) -> BaseModelRevision:
    return adapter.base_model.revisions.first() or make_base_revision(base_model=adapter.base_model)


def _start_upload(
    *,
    adapter: Adapter,
    base_revision: BaseModelRevision,
    uploader: Person,
    name: str,
    files: dict[str, bytes],
    lineage: dict[str, Any],
) -> Version:
    root_digest = manifest.root_digest(
        manifest.SignedFile(path=path, size=len(content), sha256=hashlib.sha256(content).hexdigest())
        for path, content in files.items()
    )
    version = Version.objects.create(
        adapter=adapter,
        name=name,
        base_revision=base_revision,
        uploader=uploader,
        root_digest=root_digest,
        engine_name=naming.engine_name(
            tenant=adapter.tenant.name,
            adapter=adapter.name,
            version=name,
            base_digest=base_revision.digest,
            root_digest=root_digest,
        ),
        lineage=lineage,
        state=VersionState.UPLOADING.value,
        state_changed_at=timezone.now(),
    )
    for path, content in files.items():
        artifact, _created = Artifact.objects.get_or_create(
            tenant=adapter.tenant,
            sha256=hashlib.sha256(content).hexdigest(),
            defaults={"size": len(content), "stored_at": timezone.now()},
        )
        VersionFile.objects.create(version=version, path=path, artifact=artifact)
    return version
