from dataclasses import dataclass

import pytest
from django.test import Client

from cachecontrol.models import LoadRequest, Node, Residency
from cachecontrol.services.residencies import warm_version
from cachecontrol.states import Outcome
from registry.models import Person, Tenant, Version
from registry.states import Role
from tests.factories.cachecontrol import make_node, tell
from tests.factories.registry import (
    make_actor,
    make_adapter,
    make_base_revision,
    make_person,
    make_tenant,
    make_version,
)
from tests.web.conftest import SignIn

AS = "/ui/tenants/acme/adapters/tone/versions/v1"


@dataclass
class World:
    """A node with two slots, a version of acme loaded on it and one of globex; browsers of those who look at it."""

    node: Node
    acme: Tenant
    own: Version
    other: Version
    operator: Client
    viewer: Client
    admin: Client
    admin_person: Person


@pytest.fixture
def world(db: None, sent: list[object], signer: object, store: object, sign_in: SignIn) -> World:
    acme, globex = make_tenant(name="acme"), make_tenant(name="globex")
    base = make_base_revision(label="r1")
    own = make_version(adapter=make_adapter(tenant=acme, base_model=base.base_model, name="tone"), name="v1")
    other = make_version(adapter=make_adapter(tenant=globex, base_model=base.base_model, name="secret"), name="v1")
    node = make_node(base_revision=own.base_revision, name="n1")
    for version in (own, other):
        load(node, version)
    admin = make_person(is_platform_admin=True)
    return World(
        node=node,
        acme=acme,
        own=own,
        other=other,
        operator=sign_in(roles={acme: [Role.OPERATOR]}),
        viewer=sign_in(roles={acme: [Role.VIEWER]}),
        admin=sign_in(admin),
        admin_person=admin,
    )


def load(node: Node, version: Version) -> None:
    residency = warm_version(actor=make_actor(), node=node, version=version)
    tell(node, version, Outcome.LOADED, timings_ms={})
    Residency.objects.filter(pk=residency.pk).update(tier="gpu", tier_is_estimate=True, load_ms=120)
    # Nobody waits for it any more, as the next look at the queue would find.
    LoadRequest.objects.all().delete()
