import pytest

from gateway.errors import ModelNotFound
from gateway.listing import model_document, model_list
from tests.unit.gateway.worlds import FOREIGN, acme_world, shared_row, version_row


def test_a_tenant_sees_its_own_aliases_and_no_others() -> None:
    assert model_list(acme_world().snapshot(), "acme") == {
        "object": "list",
        "data": [{"id": "support", "object": "model", "created": 0, "owned_by": "acme"}],
    }


@pytest.mark.parametrize("name", ["support", "acme/support"])
def test_one_alias_is_shown_under_its_own_name(name: str) -> None:
    assert model_document(acme_world().snapshot(), "acme", name)["id"] == "support"


def test_another_tenants_alias_is_not_found() -> None:
    with pytest.raises(ModelNotFound):
        model_document(acme_world().snapshot(), "acme", "other/secret")


def test_base_models_that_the_tenant_may_use_are_listed_while_a_node_serves_them() -> None:
    world = acme_world()
    world.rules.append(("acme", None, None, None, None, ["base", "gone"], True))
    listed = model_list(world.snapshot(), "acme")["data"]
    assert isinstance(listed, list)
    assert [(model["id"], model["owned_by"]) for model in listed] == [("support", "acme"), ("base", "base")]
    assert model_document(world.snapshot(), "acme", "base")["owned_by"] == "base"
    assert "base" not in repr(model_list(world.snapshot(), "other"))


def test_a_shared_alias_is_listed_by_the_callers_name_and_says_nothing_of_its_owner() -> None:
    world = acme_world()
    world.aliases.append(shared_row("ours"))
    listed = model_list(world.snapshot(), "acme")["data"]
    assert isinstance(listed, list)
    assert [(model["id"], model["owned_by"]) for model in listed] == [("ours", "shared"), ("support", "acme")]
    assert model_document(world.snapshot(), "acme", "ours")["owned_by"] == "shared"
    assert "other" not in repr(listed)


def test_a_shared_alias_whose_version_was_revoked_is_not_listed() -> None:
    world = acme_world()
    world.aliases.append(shared_row("ours"))
    world.versions[2] = version_row(FOREIGN, "v1", tenant="other", state="revoked")
    assert "ours" not in repr(model_list(world.snapshot(), "acme"))
