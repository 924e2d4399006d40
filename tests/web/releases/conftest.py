"""An alias of a tenant with a version to go to, and its people in browsers."""

from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from registry.models import Person, Tenant, Version
from registry.states import Role
from releases.models import Alias
from tests.factories.registry import make_person, make_version
from tests.factories.releases import point_alias
from tests.web.conftest import SignIn


@dataclass(frozen=True, slots=True)
class Stage:
    """Attributes:
    alias: at ``old``; ``new`` is another approved version of its adapter.

    """

    alias: Alias
    old: Version
    new: Version

    @property
    def tenant(self) -> Tenant:
        return self.alias.tenant

    @property
    def releases(self) -> str:
        return f"/ui/tenants/{self.tenant.name}/releases"

    @property
    def address(self) -> str:
        """Of the alias's page."""
        return f"{self.releases}/aliases/{self.alias.name}"

    @property
    def target(self) -> str:
        """The other version as people write it."""
        return f"{self.new.adapter.name}@{self.new.name}"

    def person(self, *roles: Role) -> Person:
        return make_person(roles={self.tenant: roles})


@pytest.fixture(autouse=True)
def _ports(sent: Any, signer: Any, store: Any) -> None:
    """Nothing is sent, and what is signed is signed by a key of the tests."""
    return


@pytest.fixture
def stage() -> Stage:
    old = make_version(name="v1")
    return Stage(point_alias(name="support", version=old), old, make_version(adapter=old.adapter, name="v2"))


@pytest.fixture
def manager(stage: Stage, sign_in: SignIn) -> Client:
    return sign_in(stage.person(Role.RELEASE_MANAGER))


@pytest.fixture
def viewer(stage: Stage, sign_in: SignIn) -> Client:
    return sign_in(stage.person(Role.VIEWER))
