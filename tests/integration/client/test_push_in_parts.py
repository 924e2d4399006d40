"""The client, a real web process in this one, and both stores: large files go in parts, and survive what comes."""

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler

from client import LorekeeperClient, PairRef, RetryPolicy, TransferFailed
from deploy.embedded.seaweed import SeaweedServer
from registry.actors import system_actor
from registry.models import Tenant, UploadInParts, Version
from registry.naming import object_key
from registry.services import stores
from registry.services.stores import artifact_store
from registry.services.tokens import create_tenant_token
from registry.states import Role, Scope, TokenKind
from registry.stores.folder import FolderStore
from tests.factories.registry import make_adapter, make_base_revision, make_person, make_tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent")]
ROOT = Path(__file__).parents[3]
PART = 64 * 1024
BODY = random.Random(3).randbytes(9 * PART + 17)
PATH = "adapter_model.safetensors"


@pytest.fixture
def address(db: None) -> Iterator[str]:
    """Where a web process answers that is a thread of this one."""
    with ThreadedWSGIServer(("127.0.0.1", 0), WSGIRequestHandler) as server:
        server.set_app(WSGIHandler())
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def web(address: str, settings: Any, tmp_path: Path) -> Iterator[str]:
    """A registry over the folder store, with parts of 64 KiB."""
    settings.STORE = {**settings.STORE, "kind": "folder", "folder": str(tmp_path / "store")}
    settings.PUBLIC_URL, settings.UPLOAD_PARTS_FROM, settings.UPLOAD_PART_BYTES = address, PART, PART
    with fresh_store():
        yield address


@pytest.fixture
def web_s3(address: str, settings: Any, s3: SeaweedServer, worker_id: str) -> Iterator[str]:
    """The same over S3, whose parts are not smaller than 5 MiB."""
    names = {"kind": "s3", "endpoint": s3.endpoint, "public_endpoint": "", "bucket": f"pushes-{worker_id}"}
    credentials = {"access_key": s3.credentials.access_key, "secret_key": s3.credentials.secret_key}
    settings.STORE = {**names, **credentials, "region": s3.region}
    settings.UPLOAD_PARTS_FROM, settings.UPLOAD_PART_BYTES = PART, 5 * 1024 * 1024
    with fresh_store():
        yield address


@contextmanager
def fresh_store() -> Iterator[None]:
    forget_stores()
    artifact_store().ensure_ready()
    yield
    forget_stores()


def forget_stores() -> None:
    stores.artifact_store.cache_clear()
    stores.folder_store.cache_clear()


@pytest.fixture
def tenant(db: None) -> Tenant:
    tenant = make_tenant(name="acme")
    make_adapter(tenant=tenant, base_model=make_base_revision(label="r1").base_model, name="tone")
    return tenant


@pytest.fixture
def token(tenant: Tenant) -> str:
    person = make_person(roles={tenant: [Role.UPLOADER]})
    scopes = [Scope.READ, Scope.UPLOAD]
    kind = TokenKind.PERSON
    return create_tenant_token(
        actor=system_actor("test"), tenant=tenant, name="t", kind=kind, scopes=scopes, person_email=person.email
    ).text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "adapter"
    root.mkdir()
    (root / "adapter_config.json").write_text("{}")
    (root / PATH).write_bytes(BODY)
    return root


class Puts(httpx.BaseTransport):
    """The network, with a list of the parts that went over it and a way to fail some."""

    def __init__(self, fail: Callable[[int], int | None] = lambda _count: None) -> None:
        self.network = httpx.HTTPTransport()
        self.statuses: list[int] = []
        self._numbers = itertools.count()
        self.fail = fail

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method != "PUT":
            return self.network.handle_request(request)
        status = self.fail(next(self._numbers))
        response = self.network.handle_request(request) if status is None else httpx.Response(status)
        self.statuses.append(response.status_code)
        return response

    def close(self) -> None:
        self.network.close()


def push(url: str, token: str, folder: Path, puts: Puts | None = None) -> Any:
    retry = RetryPolicy(attempts=4, first_delay_s=0.01)
    with LorekeeperClient(url, token, retry=retry, transport=puts or Puts()) as client:
        return client.push(folder, PairRef("acme", "tone"), base_revision="r1", name="v1")


def stored(path: str = PATH) -> bytes:
    file = Version.objects.get().files.select_related("artifact").get(path=path)
    with artifact_store().open(object_key(tenant="acme", sha256=file.artifact.sha256)) as stream:
        return stream.read()


def test_a_large_file_goes_in_parts_and_arrives_whole(web: str, token: str, folder: Path) -> None:
    puts = Puts()
    result = push(web, token, folder, puts)
    assert (result.moved_files, result.moved_bytes) == (2, len(BODY) + 2)
    assert puts.statuses == [200] * 11
    assert Version.objects.get().state == "validating"
    assert stored() == BODY


def test_a_large_file_goes_to_s3_in_parts(web_s3: str, token: str, folder: Path) -> None:
    body = random.Random(4).randbytes(11 * 1024 * 1024)
    (folder / PATH).write_bytes(body)
    puts = Puts()
    push(web_s3, token, folder, puts)
    assert puts.statuses == [200] * 4
    assert Version.objects.get().state == "validating"
    assert stored() == body


def test_a_push_that_broke_off_sends_only_what_is_missing(web: str, token: str, folder: Path) -> None:
    with pytest.raises(TransferFailed):
        push(web, token, folder, Puts(lambda count: None if count < 6 else 400))
    puts = Puts()
    result = push(web, token, folder, puts)
    # The small file is offered again, and found to be there.
    assert len(puts.statuses) <= 6
    assert result.resumed
    assert result.moved_bytes <= 5 * PART
    assert stored() == BODY


def test_an_address_that_expired_is_renewed_for_its_part_alone(web: str, token: str, folder: Path) -> None:
    puts = Puts(lambda count: 403 if count == 2 else None)
    push(web, token, folder, puts)
    assert sorted(puts.statuses) == [200] * 11 + [403]
    assert stored() == BODY


def test_a_store_in_trouble_is_asked_again(web: str, token: str, folder: Path) -> None:
    puts = Puts(lambda count: 503 if count in {1, 4, 7} else None)
    push(web, token, folder, puts)
    assert puts.statuses.count(503) == 3
    assert stored() == BODY


def test_a_client_killed_in_the_middle_goes_on_where_it_was(
    web: str, token: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_part, arrived = FolderStore._store_part, itertools.count(1)
    reached, killed = threading.Event(), threading.Event()

    def stop_at_the_seventh(self: FolderStore, *given: Any) -> None:
        if next(arrived) == 7:
            reached.set()
            killed.wait(30)
        store_part(self, *given)

    monkeypatch.setattr(FolderStore, "_store_part", stop_at_the_seventh)
    start = [sys.executable, "-c", "from client.cli.main import main; main()"]
    options = ["--version", "v1", "--base-revision", "r1", "--workers", "1"]
    environ = {"LOREKEEPER_URL": web, "LOREKEEPER_TOKEN": token, "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([*start, "push", str(folder), "acme/tone", *options], env=environ)
    assert reached.wait(30)
    process.kill()
    assert process.wait(10) == -signal.SIGKILL
    killed.set()
    assert UploadInParts.objects.count() == 1
    result = push(web, token, folder)
    assert len(BODY) - 7 * PART <= result.moved_bytes <= len(BODY) - 6 * PART
    assert stored() == BODY
    assert Version.objects.get().state == "validating"
