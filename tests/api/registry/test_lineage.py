from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from registry.models import Adapter, Version
from registry.states import Role
from tests.factories.adapters import adapter_files, manifest_of
from tests.factories.registry import make_adapter, make_version

VERSIONS = "/api/v1/tenants/acme/adapters/support-tone/versions"
DIGEST, COMMIT = "ab" * 32, "c0" * 20
Caller = Callable[..., APIClient]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent", "store")]


def start(client: APIClient, name: str, **lineage: object) -> Any:
    body = {"base_revision": "r1", "files": manifest_of(adapter_files()), "name": name, "lineage": lineage}
    return client.post(VERSIONS, body, format="json")


def found(client: APIClient, query: str, url: str = VERSIONS) -> list[str]:
    answer = client.get(f"{url}?{query}")
    assert answer.status_code == 200, answer.json()
    return sorted(version["name"] for version in answer.json()["results"])


def test_versions_are_found_by_where_they_come_from(as_role: Caller, adapter: Adapter) -> None:
    uploader = as_role(Role.UPLOADER)
    first = {"training_data_digest": DIGEST.upper(), "git_commit": COMMIT, "run_url": "https://runs.example/1"}
    assert start(uploader, "v1", **first, metrics={"eval_loss": 1.5, "acc": 0.9}).status_code == 201
    second = {"git_commit": COMMIT, "parent_version": "v1"}
    assert start(uploader, "v2", **second, metrics={"eval_loss": 2.5}).status_code == 201
    assert start(uploader, "v3").status_code == 201
    viewer = as_role(Role.VIEWER)
    assert found(viewer, f"training_data_digest={DIGEST}") == ["v1"]
    assert found(viewer, f"git_commit={COMMIT.upper()}") == ["v1", "v2"]
    assert found(viewer, "run_url=https://runs.example/1") == ["v1"]
    assert found(viewer, "parent_version=support-tone@v1") == ["v2"]
    assert found(viewer, "metric=eval_loss<2") == ["v1"]
    assert found(viewer, "metric=eval_loss>%3D1.5") == ["v1", "v2"]
    assert found(viewer, "metric=eval_loss<3,acc>0.5") == ["v1"]
    assert found(viewer, f"git_commit={COMMIT}&metric=eval_loss>2&state=uploading") == ["v2"]
    assert found(viewer, f"git_commit={COMMIT}", "/api/v1/tenants/acme/versions") == ["v1", "v2"]


def test_other_tenants_are_not_found(as_role: Caller, adapter: Adapter) -> None:
    ours = make_version(adapter=make_adapter(tenant=adapter.tenant))
    make_version()
    viewer = as_role(Role.VIEWER)
    assert found(viewer, "state=approved", "/api/v1/tenants/acme/versions") == [ours.name]
    assert found(viewer, f"adapter={adapter.name}", "/api/v1/tenants/acme/versions") == []


@pytest.mark.parametrize(
    ("lineage", "field"),
    [
        ({"parent_version": "v9"}, "lineage.parent_version"),
        ({"git_commit": "main"}, "lineage.git_commit"),
        ({"run": "42"}, "lineage.run"),
    ],
)
def test_a_lineage_of_another_shape_is_refused(
    as_role: Caller, adapter: Adapter, lineage: dict[str, object], field: str
) -> None:
    answer = start(as_role(Role.UPLOADER), "v1", **lineage)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert not Version.objects.exists()


@pytest.mark.parametrize("query", ["metric=loss", "training_data_digest=x", "parent_version=v1", "lineage=x"])
def test_a_search_that_can_not_be_read_is_refused(as_role: Caller, adapter: Adapter, query: str) -> None:
    assert as_role(Role.VIEWER).get(f"{VERSIONS}?{query}").status_code == 400


def test_a_parent_is_of_the_same_tenant(as_role: Caller, adapter: Adapter) -> None:
    foreign = make_version()
    named = f"{foreign.adapter.name}@{foreign.name}"
    assert start(as_role(Role.UPLOADER), "v1", parent_version=named).status_code == 400
