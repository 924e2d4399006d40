"""The hub-compatible API as its clients use it, from raw requests."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from registry.actors import system_actor
from registry.models import Adapter, Version
from registry.services.approvals import approve_version
from registry.states import Role
from releases.services.aliases import set_alias
from tests.api.registry.conftest import Caller, adapter, as_role, base_revision, tenant
from tests.factories.adapters import adapter_files
from tests.factories.hub import added, commit_body
from tests.factories.registry import make_member
from workers.jobs.validation import validate_version

__all__ = ["adapter", "as_role", "base_revision", "tenant"]

REPO = "acme/support-tone"
SYSTEM = system_actor("test")


class HubClient:
    """The calls of ``huggingface_hub``, one method each, on one repository."""

    def __init__(self, client: APIClient, repo: str = REPO) -> None:
        self.client: Any = client
        self.repo = repo

    def api(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        address = f"/api/models/{self.repo}{path}"
        if query:
            address += "?" + "&".join(f"{name}={value}" for name, value in query.items())
        return self.client.generic(method, address, json.dumps(body or {}), content_type="application/json")

    def create(self, **more: Any) -> Any:
        organization, name = self.repo.split("/")
        return self.client.post("/api/repos/create", {"organization": organization, "name": name, **more}, "json")

    def commit(self, *operations: dict[str, Any], branch: str = "main", parent: str | None = None) -> Any:
        return self.send(commit_body(*operations, parent=parent), branch=branch)

    def send(self, body: bytes, *, branch: str = "main") -> Any:
        address = f"/api/models/{self.repo}/commit/{branch}"
        return self.client.generic("POST", address, body, content_type="application/x-ndjson")

    def push(self, files: dict[str, bytes], **more: Any) -> str:
        answer = self.commit(*(added(path, content) for path, content in files.items()), **more)
        assert answer.status_code == 200, answer.json()
        return str(answer.json()["commitOid"])

    def tag(self, name: str, revision: str = "main") -> Any:
        return self.api("POST", f"/tag/{revision}", {"tag": name})

    def info(self, revision: str | None = None) -> Any:
        return self.api("GET", f"/revision/{revision}" if revision else "")

    def resolve(self, path: str, revision: str = "main", *, method: str = "GET", **headers: str) -> Any:
        answer = self.client.generic(method, f"/{self.repo}/resolve/{revision}/{path}", **headers)
        if answer.streaming:
            # An answer that a test does not read would keep its file open.
            answer.streaming_content = [answer.getvalue()]
        return answer


@pytest.fixture
def hub(as_role: Caller, store: object, sent: list[Any]) -> HubClient:
    """The uploader's."""
    return HubClient(as_role(Role.UPLOADER))


@pytest.fixture
def reader(as_role: Caller, store: object) -> HubClient:
    return HubClient(as_role(Role.VIEWER))


@pytest.fixture
def release(hub: HubClient, adapter: Adapter, signer: object) -> Callable[..., Version]:
    """Push, tag, validate, approve and, if asked for, move the default alias to it."""

    def make(name: str = "v1", *, seed: int = 0, default: bool = False) -> Version:
        hub.push(adapter_files(seed=seed))
        assert hub.tag(name).status_code == 200
        version = Version.objects.get(name=name)
        validate_version(version_id=version.pk)
        version.refresh_from_db()
        reviewer = make_member(version.adapter.tenant, Role.REVIEWER)
        approved = approve_version(actor=reviewer, version=version, digest=version.root_digest)
        if default:
            point_default(approved)
        return approved

    return make


def point_default(version: Version) -> None:
    line = version.adapter
    set_alias(actor=SYSTEM, tenant=line.tenant, name=f"{line.name}.default", adapter=line, version=version)
