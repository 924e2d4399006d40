"""Unmodified clients where the bytes come through the web process: every name is first told which commit it means."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.servers.basehttp import ThreadedWSGIServer
from django.core.wsgi import get_wsgi_application
from django.test.testcases import QuietWSGIRequestHandler

from registry.models import Version
from registry.services.withdrawals import revoke_version
from registry.states import Role
from tests.api.registry.conftest import Caller
from tests.api.registry.hub.conftest import SYSTEM
from tests.e2e.hub_environments import client_python, run_client
from tests.factories.adapters import adapter_files


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadedWSGIServer(("127.0.0.1", 0), QuietWSGIRequestHandler)
    server.set_app(get_wsgi_application())
    threading.Thread(target=server.serve_forever).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.e2e
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("version", ["2.4.0", "1.5.0", "0.36.2"])
def test_a_client_finds_commits_and_bytes_by_name_and_forgets_what_was_revoked(
    endpoint: str, release: Callable[..., Version], as_role: Caller, tmp_path: Path, version: str
) -> None:
    released = release("v1", default=True)
    token = str(as_role(Role.VIEWER)._credentials["HTTP_AUTHORIZATION"]).removeprefix("Bearer ")  # type: ignore[attr-defined]

    def read(revision: str) -> dict[str, Any]:
        python = client_python(version, f"huggingface_hub=={version}")
        arguments = ("read", "acme/support-tone", revision, str(tmp_path / "cache"))
        return run_client(python, "hub_client.py", *arguments, endpoint=endpoint, token=token, home=tmp_path)

    for revision in ("main", "v1"):
        found = read(revision)
        assert found["commit_folder"] == found["sha"]
        assert found["digests"] == {
            path: hashlib.sha256(content).hexdigest() for path, content in adapter_files().items()
        }
        assert found["exists"] == [True, False]
    revoke_version(actor=SYSTEM, version=released, reason="poisoned")
    assert read("main")["error"] == read("v1")["error"] == "RevisionNotFoundError"
