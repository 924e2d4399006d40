import pytest

from gateway.errors import ModelNotFound
from gateway.listing import model_document, model_list
from tests.unit.gateway.worlds import acme_world


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
