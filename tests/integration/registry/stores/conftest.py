"""Both stores, each with a real server in front: SeaweedFS, and a small HTTP server that redeems tickets."""

import http.server
import io
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deploy.embedded.seaweed import SeaweedServer
from registry.stores.errors import ObjectMissing, StoreDigestMismatch, StoreError, StoreSizeMismatch, TicketError
from registry.stores.folder import FolderStore
from registry.stores.ports import ArtifactStore
from registry.stores.s3 import S3Store

STATUS = {TicketError: 403, ObjectMissing: 404, StoreDigestMismatch: 400, StoreSizeMismatch: 400}


@pytest.fixture
def s3_store(s3: SeaweedServer, worker_id: str) -> Iterator[S3Store]:
    """One bucket for each test process, emptied after each test: SeaweedFS sets volumes aside for every bucket."""
    bucket = f"stores-{worker_id}"
    store = S3Store(
        endpoint=s3.endpoint,
        bucket=bucket,
        access_key=s3.credentials.access_key,
        secret_key=s3.credentials.secret_key,
        region=s3.region,
    )
    store.ensure_ready()
    yield store
    for entry in store._client.list_objects_v2(Bucket=bucket).get("Contents", []):
        store.delete(entry["Key"])
    store.remove_abandoned(before=datetime.now(UTC) + timedelta(hours=1))


@pytest.fixture
def folder_store(tmp_path: Path) -> Iterator[FolderStore]:
    with ticket_server(tmp_path / "store") as store:
        yield store


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest) -> ArtifactStore:
    """Each store in turn, new and empty."""
    store: ArtifactStore = request.getfixturevalue(f"{request.param}_store")
    store.ensure_ready()
    return store


@contextmanager
def ticket_server(folder: Path) -> Iterator[FolderStore]:
    """A folder store whose presigned addresses are answered, as the web process does, on a free loopback port."""

    class Handler(TicketHandler):
        pass

    with ExitStack() as stack:
        server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        Handler.store = FolderStore(
            folder=folder, public_url=f"http://127.0.0.1:{server.server_port}", secret=b"s" * 32
        )
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        stack.callback(thread.join)
        stack.callback(server.shutdown)
        yield Handler.store


class TicketHandler(http.server.BaseHTTPRequestHandler):
    store: FolderStore

    def do_PUT(self) -> None:
        length = int(self.headers["Content-Length"])
        body = io.BytesIO(self.rfile.read(length))
        self._answer(lambda token: (self._put(token, body, length), b""))

    def do_GET(self) -> None:
        self._answer(self._get)

    def _put(self, token: str, body: io.BytesIO, length: int) -> int:
        return 201 if self.store.accept_put(token, body, content_length=length) else 412

    def _get(self, token: str) -> tuple[int, bytes]:
        with self.store.open(self.store.accept_get(token).key) as stream:
            return 200, stream.read()

    def _answer(self, act: Callable[[str], tuple[int, bytes]]) -> None:
        try:
            status, body = act(self.path.removeprefix("/store/"))
        except StoreError as error:
            status = next(STATUS[cls] for cls in type(error).__mro__ if cls in STATUS)
            body = str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Stay quiet: the assertions say what went wrong."""
