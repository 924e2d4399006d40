"""One function per audit event of the registry. Tags read ``subject:object:action``.

Each is called by a service inside the transaction that makes the change.
"""

from registry.actors import Actor
from registry.audit import PLATFORM_CHAIN, append_record
from registry.models import Adapter, ApiToken, BaseModelRevision, Membership, Person, SigningKey, Tenant, Version
from registry.states import VersionState


def tenant_created(*, actor: Actor, tenant: Tenant) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:tenant:create",
        object_=_object("tenant", tenant.pk, tenant.name),
        after={"name": tenant.name, "title": tenant.title},
    )


def platform_admin_made(*, actor: Actor, person: Person) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:admin:make",
        object_=_object("person", person.pk, person.email),
        before={"is_platform_admin": False},
        after={"is_platform_admin": True},
    )


def member_added(*, actor: Actor, membership: Membership) -> None:
    append_record(
        actor=actor,
        chain=membership.tenant.name,
        action="tenant:member:add",
        object_=_object("person", membership.person.pk, membership.person.email),
        after={"role": membership.role},
    )


def member_removed(*, actor: Actor, tenant: Tenant, email: str, role: str) -> None:
    append_record(
        actor=actor,
        chain=tenant.name,
        action="tenant:member:remove",
        object_=_object("person", email, email),
        before={"role": role},
    )


def token_created(*, actor: Actor, token: ApiToken) -> None:
    append_record(
        actor=actor,
        chain=_token_chain(token),
        action="tenant:token:create",
        object_=_object("token", token.prefix, token.name),
        after={
            "kind": token.kind,
            "scopes": sorted(token.scopes),
            "person": token.person.email if token.person else None,
            "expires_at": token.expires_at.isoformat() if token.expires_at else None,
        },
    )


def token_revoked(*, actor: Actor, token: ApiToken) -> None:
    append_record(
        actor=actor,
        chain=_token_chain(token),
        action="tenant:token:revoke",
        object_=_object("token", token.prefix, token.name),
        before={"scopes": sorted(token.scopes)},
    )


def base_revision_registered(*, actor: Actor, revision: BaseModelRevision) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:base_revision:register",
        object_=_object("base_revision", revision.pk, str(revision)),
        after={"digest": revision.digest, "max_rank": revision.max_rank},
    )


def signing_key_published(*, actor: Actor, key: SigningKey) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:signing_key:publish",
        object_=_object("signing_key", key.key_id, key.key_id),
        after={"valid_from": key.valid_from.isoformat()},
    )


def adapter_created(*, actor: Actor, adapter: Adapter) -> None:
    append_record(
        actor=actor,
        chain=adapter.tenant.name,
        action="tenant:adapter:create",
        object_=_object("adapter", adapter.pk, adapter.name),
        after={"base_model": adapter.base_model.name},
    )


def upload_started(*, actor: Actor, version: Version) -> None:
    append_record(
        actor=actor,
        chain=version.adapter.tenant.name,
        action="adapter:version:upload",
        object_=_version(version),
        after={
            "state": VersionState.UPLOADING.value,
            "root_digest": version.root_digest,
            "base_revision": version.base_revision.digest,
        },
    )


def version_moved(
    *,
    actor: Actor,
    version: Version,
    action: str,
    was: VersionState,
    to: VersionState,
    reason: str = "",
    facts: dict[str, str] | None = None,
) -> None:
    """A version changed state; ``action`` is the verb (finalize, validate, approve, decline, yank, revoke, expire)."""
    append_record(
        actor=actor,
        chain=version.adapter.tenant.name,
        action=f"adapter:version:{action}",
        object_=_version(version),
        before={"state": was.value},
        after={"state": to.value, **(facts or {})},
        reason=reason,
    )


def _token_chain(token: ApiToken) -> str:
    return token.tenant.name if token.tenant else PLATFORM_CHAIN


def _version(version: Version) -> dict[str, str]:
    return _object("version", version.pk, str(version))


def _object(kind: str, key: object, name: str) -> dict[str, str]:
    return {"kind": kind, "id": str(key), "name": name}
