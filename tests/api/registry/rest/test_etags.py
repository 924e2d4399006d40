from typing import Any

import pytest

from registry.states import Role
from tests.api.registry.conftest import Caller

ADAPTERS = "/api/v1/tenants/acme/adapters"
ALIAS = "/api/v1/tenants/acme/aliases/prod"


@pytest.fixture
def approved(push: Any, as_role: Caller, signer: object) -> list[str]:
    names = []
    for name in ("v1", "v2"):
        version = push(name=name)
        url = f"{ADAPTERS}/support-tone/versions/{name}"
        answer = as_role(Role.REVIEWER).post(f"{url}/approve", {"digest": version.root_digest}, format="json")
        assert answer.status_code == 200, answer.json()
        names.append(name)
    return names


def put(caller: Caller, version: str, **headers: str) -> Any:
    body = {"adapter": "support-tone", "version": version}
    return caller(Role.RELEASE_MANAGER).put(ALIAS, body, format="json", headers=headers)


def test_a_thing_that_did_not_change_is_not_sent_again(as_role: Caller, adapter: object) -> None:
    client = as_role(Role.VIEWER)
    first = client.get(f"{ADAPTERS}/support-tone")
    for sent in (first["ETag"], "W/" + first["ETag"], f'"x", {first["ETag"]}', "*"):
        again = client.get(f"{ADAPTERS}/support-tone", headers={"If-None-Match": sent})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert client.get(f"{ADAPTERS}/support-tone", headers={"If-None-Match": '"x"'}).status_code == 200


def test_an_alias_moves_only_from_the_state_that_was_named(as_role: Caller, approved: list[str]) -> None:
    first = put(as_role, "v1")
    assert first["ETag"] == as_role(Role.VIEWER).get(ALIAS)["ETag"]
    moved = put(as_role, "v2", **{"If-Match": first["ETag"]})
    assert (moved.status_code, moved.json()["version"]) == (200, "v2")
    late = put(as_role, "v1", **{"If-Match": first["ETag"]})
    assert (late.status_code, late.json()["code"], late.json()["field"]) == (412, "precondition_failed", "If-Match")
    assert as_role(Role.VIEWER).get(ALIAS).json()["version"] == "v2"


def test_a_weak_or_unknown_tag_allows_no_change(as_role: Caller, approved: list[str]) -> None:
    tag = put(as_role, "v1")["ETag"]
    for sent in (f"W/{tag}", tag.strip('"'), '"x"', ""):
        assert put(as_role, "v2", **{"If-Match": sent}).status_code == 412
    assert put(as_role, "v2", **{"If-Match": "*"}).status_code == 200


def test_an_alias_can_be_asked_to_be_new_or_to_be_there(as_role: Caller, approved: list[str]) -> None:
    assert put(as_role, "v1", **{"If-Match": "*"}).status_code == 412
    assert put(as_role, "v1", **{"If-None-Match": "*"}).status_code == 200
    refused = put(as_role, "v2", **{"If-None-Match": "*"})
    assert (refused.status_code, refused.json()["field"]) == (412, "If-None-Match")
