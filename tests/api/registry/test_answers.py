"""What every answer promises beside its body: caching, failures behind it, and the work it costs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from registry import selectors
from registry.actors import system_actor
from registry.models import Adapter, Tenant, Version
from registry.services.tenants import remove_member
from registry.states import Role, VersionState
from registry.stores.errors import StoreUnavailable
from registry.stores.folder import FolderStore
from tests.factories.adapters import adapter_files, manifest_of
from tests.factories.registry import make_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store", "sent")]
Caller = Callable[..., APIClient]
VERSIONS = "/api/v1/tenants/acme/adapters/support-tone/versions"


def test_an_answer_that_holds_a_secret_is_not_kept_by_any_cache(admin: APIClient, tenant: Tenant) -> None:
    body = {"name": "app", "kind": "application", "scopes": ["infer"]}
    answer = admin.post("/api/v1/tenants/acme/tokens", body, format="json")
    assert answer.status_code == 201
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("error", [OperationalError("gone"), InterfaceError("closed")])
def test_a_database_that_is_away_is_told_as_a_passing_trouble(
    as_role: Caller, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    client = as_role(Role.VIEWER)

    def fail(**_names: Any) -> None:
        raise error

    monkeypatch.setattr(selectors, "get_tenant", fail)
    answer = client.get("/api/v1/tenants/acme/members")
    assert answer.status_code == 503
    assert answer.json()["code"] == "database_unavailable"


def test_listing_versions_costs_the_same_number_of_queries_however_many_there_are(
    as_role: Caller, adapter: Adapter
) -> None:
    client = as_role(Role.VIEWER)
    client.get(VERSIONS)

    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            assert client.get(VERSIONS).status_code == 200
        return len(caught)

    make_version(adapter=adapter, state=VersionState.APPROVED)
    few = queries()
    for _number in range(3):
        make_version(adapter=adapter, state=VersionState.APPROVED)
    assert queries() == few


def test_who_is_no_member_of_anything_any_more_sees_nothing_of_the_platform(as_role: Caller, tenant: Tenant) -> None:
    client = as_role(Role.VIEWER)
    assert client.get("/api/v1/nodes").status_code == 200
    email = client.get("/api/v1/whoami").json()["person"]["email"]
    remove_member(actor=system_actor("test"), tenant=tenant, email=email, role=Role.VIEWER)
    for address in ("nodes", "base-models", "tenants"):
        assert client.get(f"/api/v1/{address}").status_code == 403


def test_a_decline_may_be_repeated_when_its_answer_was_lost(as_role: Caller, push: Callable[..., Version]) -> None:
    version = push()
    address = f"{VERSIONS}/{version.name}/decline"
    reviewer = as_role(Role.REVIEWER)
    assert reviewer.post(address, {"reason": "rude"}, format="json").status_code == 200
    assert reviewer.post(address, {"reason": "rude"}, format="json").status_code == 200
    assert version.approvals.count() == 1
    other = as_role(Role.REVIEWER, new=True).post(address, {"reason": "rude, too"}, format="json")
    assert other.status_code == 409


def test_a_request_for_another_host_is_refused_as_a_problem() -> None:
    answer = APIClient(raise_request_exception=False).get("/healthz", HTTP_HOST="evil.example")
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_signing_key_that_can_not_be_read_is_the_servers_trouble_and_its_place_is_not_told(
    as_role: Caller, push: Callable[..., Version], settings: Any, tmp_path: Path
) -> None:
    version = push()
    settings.SIGNING_KEYS = [str(tmp_path / "gone.pem")]
    body = {"digest": version.root_digest}
    answer = as_role(Role.REVIEWER).post(f"{VERSIONS}/{version.name}/approve", body, format="json")
    assert (answer.status_code, answer.json()["code"]) == (503, "signer_unavailable")
    assert "gone.pem" not in answer.content.decode()
    version.refresh_from_db()
    assert version.state == VersionState.CANDIDATE
    assert not version.approvals.exists()


def test_a_store_that_is_away_is_a_passing_trouble_and_its_address_is_not_told(
    as_role: Caller, adapter: Adapter, store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = as_role(Role.UPLOADER)
    body = {"base_revision": "r1", "files": manifest_of(adapter_files())}
    name = client.post(VERSIONS, body, format="json").json()["name"]

    def away(_key: str) -> None:
        raise StoreUnavailable("could not connect to http://10.0.0.7:8333/bucket")

    monkeypatch.setattr(store, "stat", away)
    answer = client.post(f"{VERSIONS}/{name}/finalize")
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
    assert "10.0.0.7" not in answer.content.decode()
