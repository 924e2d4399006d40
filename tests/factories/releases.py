"""Plain functions that make aliases through the service, so that their history is a real one."""

from registry.actors import Actor
from registry.models import Tenant, Version
from releases.models import Alias
from releases.services.aliases import set_alias
from tests.factories.registry import make_actor, make_version, next_name


def make_alias(*, version: Version | None = None, name: str | None = None) -> Alias:
    """An alias at revision 1."""
    return point_alias(name=name or next_name("alias"), version=version or make_version())


def point_alias(*, name: str, version: Version, actor: Actor | None = None) -> Alias:
    """Point the alias ``name`` of the version's tenant at ``version``."""
    tenant: Tenant = version.adapter.tenant
    return set_alias(actor=actor or make_actor(), tenant=tenant, name=name, adapter=version.adapter, version=version)
