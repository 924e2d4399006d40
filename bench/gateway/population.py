"""Rows for a gateway's snapshot: tenants, aliases with a version each, and nodes that have them loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.gateway.load import Target

if TYPE_CHECKING:
    from cachecontrol.models import Node
    from registry.models import Adapter, Signature, Tenant, Version
    from releases.models import Alias, AliasRevision

TENANTS = 500
ALIASES = 10_000
NODES = 50
COPIES = 2
_SLOTS = 64
_BATCH = 2000


@dataclass(frozen=True, slots=True)
class Hosted:
    """An alias that answers, whose key it is, and the name by which engines know its version."""

    tenant: str
    alias: str
    key: str
    engine_name: str
    version_id: str

    @property
    def target(self) -> Target:
        """What to ask, and the text that only the right version answers."""
        return Target(self.alias, self.key, self.engine_name[::-1])


def populate(
    engine_urls: list[str], *, tenants: int = TENANTS, aliases: int = ALIASES, copies: int = COPIES
) -> list[Hosted]:
    """Aliases spread evenly over the tenants, each version loaded on ``copies`` of the engines."""
    from django.db import transaction  # noqa: PLC0415  Django was set up meanwhile

    from tests.factories.cachecontrol import make_node  # noqa: PLC0415
    from tests.factories.registry import make_adapter, make_base_revision, make_tenant, make_version  # noqa: PLC0415

    revision = make_base_revision()
    owners = [make_adapter(tenant=make_tenant(), base_model=revision.base_model) for _number in range(tenants)]
    nodes = [
        make_node(base_revision=revision, engine_url=url, gpu_slots=_SLOTS, cpu_slots=aliases, disk_bytes=10**12)
        for url in engine_urls
    ]
    keys = [_key(adapter.tenant) for adapter in owners]
    model = make_version(adapter=owners[0])
    versions = [_version(model, owners[number % tenants], number) for number in range(aliases)]
    with transaction.atomic():
        _insert_versions(model, versions)
        _insert_aliases(versions)
    _insert_residencies(versions, nodes, copies)
    return [
        Hosted(
            version.adapter.tenant.name, _alias(version), keys[number % tenants], version.engine_name, str(version.pk)
        )
        for number, version in enumerate(versions)
    ]


def _key(tenant: Tenant) -> str:
    from registry.services.tokens import create_tenant_token  # noqa: PLC0415  as above
    from registry.states import Scope, TokenKind  # noqa: PLC0415
    from tests.factories.registry import make_actor  # noqa: PLC0415

    made = create_tenant_token(
        actor=make_actor(), tenant=tenant, name="bench", kind=TokenKind.APPLICATION, scopes=[Scope.INFER]
    )
    return made.text


def _version(model: Version, adapter: Adapter, number: int) -> Version:
    from registry.models import Version  # noqa: PLC0415  as above

    return Version(
        adapter=adapter,
        name=f"v{number}",
        base_revision=model.base_revision,
        uploader=model.uploader,
        root_digest=model.root_digest,
        engine_name=f"lk-{adapter.tenant.name}-{adapter.name}-v{number}-{model.root_digest[:16]}",
        state=model.state,
        state_changed_at=model.state_changed_at,
        rank=model.rank,
        validation_digest=model.validation_digest,
    )


def _alias(version: Version) -> str:
    return f"alias-{version.name}"


def _insert_versions(model: Version, versions: list[Version]) -> None:
    from registry.models import Signature, Version  # noqa: PLC0415  as above

    Version.objects.bulk_create(versions, batch_size=_BATCH)
    signed: list[Signature] = [
        Signature(version=version, key=model.signature.key, root_digest=version.root_digest, bundle="", attestation="")
        for version in versions
    ]
    Signature.objects.bulk_create(signed, batch_size=_BATCH)


def _insert_aliases(versions: list[Version]) -> None:
    from releases.models import Alias, AliasRevision  # noqa: PLC0415  as above

    aliases: list[Alias] = [
        Alias(
            tenant=version.adapter.tenant,
            name=_alias(version),
            adapter=version.adapter,
            version=version,
            updated_at=version.state_changed_at,
        )
        for version in versions
    ]
    Alias.objects.bulk_create(aliases, batch_size=_BATCH)
    history: list[AliasRevision] = [
        AliasRevision(
            alias=alias,
            number=1,
            version=alias.version,
            kind=alias.moved_by,
            actor_kind="system",
            actor_id="bench",
            actor_name="bench",
            at=alias.updated_at,
        )
        for alias in aliases
    ]
    AliasRevision.objects.bulk_create(history, batch_size=_BATCH)


def _insert_residencies(versions: list[Version], nodes: list[Node], copies: int) -> None:
    from cachecontrol.models import Residency  # noqa: PLC0415  as above

    Residency.objects.bulk_create(
        [
            Residency(
                node=nodes[(number * copies + copy) % len(nodes)],
                version=version,
                desired="gpu",
                observed="loaded",
                state_changed_at=version.state_changed_at,
            )
            for number, version in enumerate(versions)
            for copy in range(copies)
        ],
        batch_size=_BATCH,
    )


def make_cold(hosted: list[Hosted]) -> list[Target]:
    """Take these versions off all engines; gives what to ask for them."""
    from cachecontrol.models import Residency  # noqa: PLC0415  as above

    Residency.objects.filter(version_id__in=[one.version_id for one in hosted]).delete()
    return [one.target for one in hosted]
