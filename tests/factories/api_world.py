"""One of everything that addresses of the API name, and callers of every kind with real tokens."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO

from django.db import transaction

from cachecontrol.models import CachePolicy
from registry.models import Adapter, ApiToken, BaseModelRevision, Person, Tenant, Version
from registry.naming import object_key
from registry.services.people.accounts import make_password_link
from registry.services.stores import artifact_store
from registry.services.tokens import PERSON_SCOPES, NewToken, create_platform_token, create_tenant_token
from registry.states import Role, Scope, TokenKind, VersionState
from tests.factories.cachecontrol import make_policy, register
from tests.factories.registry import (
    make_actor,
    make_adapter,
    make_base_revision,
    make_person,
    make_tenant,
    make_version,
)
from tests.factories.releases import begin_release, point_alias, run_release
from tests.factories.webhooks import make_delivery, make_webhook

TENANT = "acme"
OTHER = "other"
# That of ``make_version``.
CONFIG = b"{}"
_STATES = (VersionState.UPLOADING, VersionState.CANDIDATE)


@dataclass(frozen=True, slots=True)
class ApiWorld:
    """What there is.

    Attributes:
        path: values for the parameters of addresses, by their names; they lead to things of the tenant ``acme``,
            but for ``platform_delivery``: a delivery of the platform's.
        tokens: token texts by caller: a role of ``acme`` each, and ``everybody`` (all roles), ``reader`` (all roles,
            but the scope read alone), ``outsider`` (all roles of another tenant), ``admin``, ``sovereign`` (an
            admin with all roles), ``application``, ``gateway``, ``node``, and ``anybody`` without a token.
        versions: names of versions of the adapter, in several states.

    """

    path: dict[str, str]
    tokens: dict[str, str | None]
    versions: tuple[str, ...]


@contextmanager
def undone() -> Iterator[None]:
    """Whatever is changed inside is rolled back at the end."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def build_world() -> ApiWorld:
    tenant, other = make_tenant(name=TENANT), make_tenant(name=OTHER)
    base = make_base_revision(label="r1")
    adapter = make_adapter(tenant=tenant, base_model=base.base_model, name="tone")
    version = make_version(adapter=adapter, base_revision=base, name="v1")
    alias = point_alias(name="prod", version=version)
    # Far enough for the alias to be split.
    run_release(begin_release(alias=alias, candidate=make_version(adapter=adapter, base_revision=base)), until=2)
    node = register(name="n1", base_revision=base)
    policy = make_policy(base_model=base.base_model)
    _keep_config(tenant)
    member = make_person(roles={tenant: [Role.VIEWER]})
    spare = _tenant_token(tenant, member, [Scope.READ])
    return ApiWorld(
        path={
            **_path(adapter=adapter, version=version, member=member, spare=spare.token),
            **_policy_path(policy),
            **_webhook_path(tenant),
        },
        tokens={**_roles(tenant), **_others(tenant, other), "node": node.token, "anybody": None},
        versions=(version.name, *(_made(adapter, base, state).name for state in _STATES)),
    )


def _made(adapter: Adapter, base: BaseModelRevision, state: VersionState) -> Version:
    return make_version(adapter=adapter, base_revision=base, name=state.value, state=state)


def _keep_config(tenant: Tenant) -> None:
    """What pages show of the versions' files: all have the same config."""
    key = object_key(tenant=tenant.name, sha256=sha256(CONFIG).hexdigest())
    artifact_store().put_stream(key, BytesIO(CONFIG), size=len(CONFIG), sha256=sha256(CONFIG).hexdigest())


def _path(*, adapter: Adapter, version: Version, member: Person, spare: ApiToken) -> dict[str, str]:
    return {
        "tenant": adapter.tenant.name,
        "adapter": adapter.name,
        "version": version.name,
        "version_id": str(version.pk),
        "root_digest": version.root_digest,
        "alias": "prod",
        "grantee": OTHER,
        "node": "n1",
        "base_model": adapter.base_model.name,
        "revision": "r1",
        "email": member.email,
        "role": Role.VIEWER.value,
        "prefix": spare.prefix,
        "key": make_password_link(actor=make_actor(), email=member.email).key,
        "path": "adapter_config.json",
        "key_id": "0" * 64,
        "seq": "1",
        "name": "smoke",
        "digest": "0" * 64,
    }


def _policy_path(policy: CachePolicy) -> dict[str, str]:
    """The policy that is proposed, and the text of one more."""
    return {
        "number": str(policy.number),
        "policy_digest": policy.digest,
        "policy_text": f"{policy.text}loading: {{queue_limit: 2}}\n",
    }


def _webhook_path(tenant: Tenant) -> dict[str, str]:
    """A receiver of the tenant's, and one of the platform's by the same name, each with something sent to it."""
    platforms, own = (make_delivery(endpoint=make_webhook(tenant=owner, name="hook")) for owner in (None, tenant))
    return {"webhook": "hook", "delivery": str(own.pk), "platform_delivery": str(platforms.pk)}


def _tenant_token(tenant: Tenant, person: Person, scopes: Iterable[Scope]) -> NewToken:
    return create_tenant_token(
        actor=make_actor(),
        tenant=tenant,
        name="test",
        kind=TokenKind.PERSON,
        scopes=scopes,
        person_email=person.email,
    )


def _roles(tenant: Tenant) -> dict[str, str]:
    return {role.value: _tenant_token(tenant, make_person(roles={tenant: [role]}), PERSON_SCOPES).text for role in Role}


def _others(tenant: Tenant, other: Tenant) -> dict[str, str]:
    everybody, outsider = make_person(roles={tenant: list(Role)}), make_person(roles={other: list(Role)})
    system = make_actor()
    application = create_tenant_token(
        actor=system, tenant=tenant, name="app", kind=TokenKind.APPLICATION, scopes=[Scope.INFER]
    )
    gateway = create_platform_token(actor=system, name="gw", kind=TokenKind.GATEWAY, scopes=[Scope.DEMAND])
    monitor = create_platform_token(actor=system, name="mon", kind=TokenKind.MONITOR, scopes=[Scope.METRICS])
    return {
        "everybody": _tenant_token(tenant, everybody, PERSON_SCOPES).text,
        "reader": _tenant_token(tenant, everybody, [Scope.READ]).text,
        "outsider": _tenant_token(other, outsider, PERSON_SCOPES).text,
        "admin": _admin_token(make_person(is_platform_admin=True)),
        "sovereign": _admin_token(make_person(is_platform_admin=True, roles={tenant: list(Role)})),
        "application": application.text,
        "gateway": gateway.text,
        "monitor": monitor.text,
    }


def _admin_token(person: Person) -> str:
    return create_platform_token(
        actor=make_actor(), name="admin", kind=TokenKind.PERSON, scopes=PERSON_SCOPES, person=person
    ).text
