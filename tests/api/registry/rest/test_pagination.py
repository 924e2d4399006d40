from typing import Any

import pytest
from django.core.signing import Signer
from django.utils import timezone
from rest_framework.test import APIClient

from registry.models import Adapter, ApiToken, Tenant
from registry.states import Role
from tests.api.registry.conftest import Caller
from tests.factories.registry import make_adapter, make_tenant

URL = "/api/v1/tenants/acme/adapters"


@pytest.fixture
def viewer(as_role: Caller) -> APIClient:
    return as_role(Role.VIEWER)


@pytest.fixture
def names(tenant: Tenant) -> list[str]:
    return [make_adapter(tenant=tenant, name=f"line-{number}").name for number in range(5)]


def walk(client: APIClient, url: str, limit: int) -> list[list[str]]:
    pages, params = [], {"limit": limit}
    while True:
        answer = client.get(url, params)
        assert answer.status_code == 200, answer.json()
        pages.append([row["name"] for row in answer.json()["results"]])
        if answer.json()["next"] is None:
            return pages
        params = {"limit": limit, "cursor": answer.json()["next"]}


@pytest.mark.parametrize("limit", [1, 2, 5, 6])
def test_pages_together_are_the_whole_list_once_and_in_order(viewer: APIClient, names: list[str], limit: int) -> None:
    pages = walk(viewer, URL, limit)
    assert [name for page in pages for name in page] == names
    assert all(len(page) <= limit for page in pages)
    assert len(pages) == -(-len(names) // limit)


def test_what_is_added_before_the_cursor_moves_nothing(viewer: APIClient, tenant: Tenant, names: list[str]) -> None:
    first = viewer.get(URL, {"limit": 2}).json()
    make_adapter(tenant=tenant, name="a-first-one")
    Adapter.objects.filter(name="line-0").delete()
    second = viewer.get(URL, {"limit": 2, "cursor": first["next"]}).json()
    assert [row["name"] for row in second["results"]] == ["line-2", "line-3"]


def test_a_newest_first_list_goes_on_where_it_was(as_role: Caller, push: Any) -> None:
    client = as_role(Role.UPLOADER)
    names = [push(name=f"v{number}").name for number in range(3)]
    assert walk(client, f"{URL}/support-tone/versions", 2) == [[names[2], names[1]], [names[0]]]


def test_a_list_over_two_fields_one_of_a_relation_goes_on_where_it_was(as_role: Caller) -> None:
    person = as_role(Role.VIEWER, Role.AUDITOR, Role.REVIEWER)
    as_role(Role.OPERATOR)
    found: list[tuple[str, str]] = []
    params: dict[str, Any] = {"limit": 1}
    while True:
        answer = person.get("/api/v1/tenants/acme/members", params).json()
        found += [(row["email"], row["role"]) for row in answer["results"]]
        if answer["next"] is None:
            break
        params["cursor"] = answer["next"]
    assert len(found) == 4
    assert found == sorted(set(found))


def test_rows_of_the_same_moment_are_told_apart(admin: APIClient, as_role: Caller) -> None:
    for role in list(Role)[:5]:
        as_role(role)
    ApiToken.objects.update(created_at=timezone.now())
    found: list[str] = []
    params: dict[str, Any] = {"limit": 2}
    while True:
        answer = admin.get("/api/v1/tenants/acme/tokens", params).json()
        found += [row["prefix"] for row in answer["results"]]
        if answer["next"] is None:
            break
        params["cursor"] = answer["next"]
    assert found == list(ApiToken.objects.exclude(tenant=None).order_by("pk").values_list("prefix", flat=True))


def test_a_cursor_that_was_made_up_or_changed_is_refused(viewer: APIClient, names: list[str]) -> None:
    given = viewer.get(URL, {"limit": 2}).json()["next"]
    for cursor in ("", "x", given[:-1], "A" + given, Signer().sign_object(["line-1"]), "\x00", "x" * 5000):
        answer = viewer.get(URL, {"cursor": cursor})
        assert answer.status_code == 400
        assert answer.json()["field"] == "cursor"


def test_a_cursor_of_another_tenants_list_is_refused(viewer: APIClient, names: list[str]) -> None:
    other = make_tenant(name="other")
    given = viewer.get(URL, {"limit": 2}).json()["next"]
    assert viewer.get(f"/api/v1/tenants/{other.name}/adapters", {"cursor": given}).status_code == 404
    assert viewer.get("/api/v1/tenants/acme/members", {"cursor": given}).status_code == 400


@pytest.mark.parametrize("limit", ["0", "-1", "501", "x", "", "9" * 50])
def test_a_limit_out_of_bounds_is_refused(viewer: APIClient, limit: str) -> None:
    answer = viewer.get(URL, {"limit": limit})
    assert (answer.status_code, answer.json()["field"]) == (400, "limit")


def test_filters_leave_out_the_rest(viewer: APIClient, tenant: Tenant, names: list[str]) -> None:
    assert [row["name"] for row in viewer.get(URL, {"name": "line-3"}).json()["results"]] == ["line-3"]
    assert viewer.get(URL, {"base_model": "no-such-model"}).json()["results"] == []


@pytest.mark.parametrize("query", ["nmae=x", "name=a&name=b"])
def test_an_unknown_or_doubled_filter_is_refused_and_named(viewer: APIClient, query: str) -> None:
    answer = viewer.get(f"{URL}?{query}")
    assert (answer.status_code, answer.json()["field"]) == (400, query[:4])
