"""Role × action of the alias services and readers."""

from collections.abc import Callable

import pytest

from registry.actors import Actor
from registry.errors import NotFound, PermissionDenied
from registry.states import Role, Scope
from releases.models import Alias
from releases.selectors import get_alias, list_aliases
from releases.served import list_alias_times
from releases.services.aliases import roll_back_alias
from tests.factories.registry import make_actor, make_member, make_person, make_tenant, make_version
from tests.factories.releases import point_alias

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture
def alias() -> Alias:
    first = make_version()
    point_alias(name="support", version=first)
    return point_alias(name="support", version=make_version(adapter=first.adapter))


def move(actor: Actor, alias: Alias) -> object:
    return point_alias(name="support", version=make_version(adapter=alias.adapter), actor=actor)


def roll_back(actor: Actor, alias: Alias) -> object:
    return roll_back_alias(actor=actor, alias=alias)


def read(actor: Actor, alias: Alias) -> object:
    tenant = alias.tenant.name
    assert alias in list_aliases(actor=actor, tenant=tenant)
    assert list_alias_times(actor=actor, tenant=tenant, name="support").count() == 2
    return get_alias(actor=actor, tenant=tenant, name="support")


ACTS: dict[Callable[[Actor, Alias], object], set[Role]] = {
    move: {Role.RELEASE_MANAGER},
    roll_back: {Role.RELEASE_MANAGER, Role.OPERATOR},
    read: set(Role),
}


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("act", list(ACTS))
def test_a_role_may_do_exactly_what_belongs_to_it(
    alias: Alias, act: Callable[[Actor, Alias], object], role: Role
) -> None:
    actor = make_member(alias.tenant, role)
    if role in ACTS[act]:
        act(actor, alias)
    else:
        with pytest.raises(PermissionDenied):
            act(actor, alias)


@pytest.mark.parametrize("act", list(ACTS))
def test_the_tenant_does_not_exist_for_members_of_others(alias: Alias, act: Callable[[Actor, Alias], object]) -> None:
    with pytest.raises(NotFound):
        act(make_member(make_tenant(), *Role), alias)


@pytest.mark.parametrize("act", [move, roll_back])
def test_a_token_without_the_release_scope_moves_nothing(alias: Alias, act: Callable[[Actor, Alias], object]) -> None:
    person = make_person(roles={alias.tenant: list(Role)})
    with pytest.raises(PermissionDenied, match="release"):
        act(make_actor(person, scopes=set(Scope) - {Scope.RELEASE}), alias)


@pytest.mark.parametrize("act", [move, roll_back])
def test_a_platform_admin_moves_nothing(alias: Alias, act: Callable[[Actor, Alias], object]) -> None:
    with pytest.raises(PermissionDenied):
        act(make_actor(make_person(is_platform_admin=True)), alias)
