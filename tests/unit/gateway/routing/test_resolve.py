import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import MissingModel, ModelNotFound, VersionRevoked, VersionUnavailable
from gateway.routing.resolve import alias_name, resolve
from registry.naming import NamingError, check_name
from tests.unit.gateway.worlds import V1, V2, acme_world, version_row


def test_an_alias_gives_the_version_that_it_points_to() -> None:
    route = resolve(acme_world().snapshot(), tenant="acme", model="support")
    assert (route.alias.name, route.version.id) == ("support", V1)


def test_the_own_tenant_may_stand_before_the_alias() -> None:
    assert resolve(acme_world().snapshot(), tenant="acme", model="acme/support").version.id == V1


def test_a_moved_alias_gives_the_other_version() -> None:
    world = acme_world()
    world.aliases[0] = ("acme", "support", V2, 2)
    assert resolve(world.snapshot(), tenant="acme", model="support").version.id == V2


UNKNOWN = [
    "unknown",
    "secret",
    "other/secret",
    "other/support",
    "acme/unknown",
    "acme/",
    "/support",
    "acme/acme/support",
    "/etc/passwd",
    "../support",
    "acme/../support",
    "./support",
    "Support",
    "support ",
    "support\n",
    "support\x00",
    "lk-support-tone-v1-acme",
    "süpport",
    "-support",
    "s" * 64,
    "s" * 1_000_000,
]


@pytest.mark.parametrize("model", UNKNOWN)
def test_what_the_tenant_does_not_have_is_not_found(model: str) -> None:
    with pytest.raises(ModelNotFound):
        resolve(acme_world().snapshot(), tenant="acme", model=model)


def test_every_unknown_model_gets_the_same_answer() -> None:
    said = set()
    for model in UNKNOWN:
        with pytest.raises(ModelNotFound) as caught:
            resolve(acme_world().snapshot(), tenant="acme", model=model)
        said.add((caught.value.message, caught.value.param, caught.value.code))
    assert len(said) == 1


@pytest.mark.parametrize("model", [None, "", 7, ["support"], {"name": "support"}, True])
def test_a_missing_model_is_a_bad_request(model: object) -> None:
    with pytest.raises(MissingModel) as caught:
        resolve(acme_world().snapshot(), tenant="acme", model=model)
    assert caught.value.param == "model"


def test_a_revoked_version_is_refused() -> None:
    world = acme_world()
    world.versions[0] = version_row(V1, "v1", state="revoked")
    with pytest.raises(VersionRevoked):
        resolve(world.snapshot(), tenant="acme", model="support")


def test_an_unknown_state_is_refused() -> None:
    world = acme_world()
    world.versions[0] = version_row(V1, "v1", state="candidate")
    with pytest.raises(VersionRevoked):
        resolve(world.snapshot(), tenant="acme", model="support")


def test_a_yanked_version_goes_on_answering() -> None:
    world = acme_world()
    world.versions[0] = version_row(V1, "v1", state="yanked")
    assert resolve(world.snapshot(), tenant="acme", model="support").version.state == "yanked"


def test_an_alias_to_a_version_out_of_sight_is_unavailable() -> None:
    world = acme_world()
    world.versions.clear()
    with pytest.raises(VersionUnavailable):
        resolve(world.snapshot(), tenant="acme", model="support")


def test_an_alias_never_gives_another_tenants_version() -> None:
    world = acme_world()
    world.versions[0] = version_row(V1, "v1", tenant="other")
    with pytest.raises(VersionUnavailable):
        resolve(world.snapshot(), tenant="acme", model="support")


@given(st.text(max_size=200))
def test_only_a_valid_name_is_ever_looked_up(model: str) -> None:
    try:
        name = alias_name("acme", model)
    except (MissingModel, ModelNotFound):
        return
    assert model in (name, f"acme/{name}")
    assert name.isascii()
    assert not set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789-")


@given(st.text(alphabet="ab0-A_.é/ \n", max_size=70))
def test_the_gateway_and_the_registry_agree_on_what_a_name_is(name: str) -> None:
    assert is_valid_here(name) == is_valid_there(name)


def is_valid_here(name: str) -> bool:
    try:
        return alias_name("acme", name) == name
    except (MissingModel, ModelNotFound):
        return False


def is_valid_there(name: str) -> bool:
    try:
        check_name(name, field="alias")
    except NamingError:
        return False
    return True
