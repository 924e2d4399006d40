"""What is measured: a migrated Postgres of its own with many signed versions, a stub engine, and a gateway process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from deploy.embedded.ports import LOOPBACK, free_port
from deploy.embedded.postgres import DATABASE, GATEWAY, OWNER, PostgresPasswords, PostgresServer
from deploy.embedded.system.secret_files import random_text
from deploy.embedded.valkey import ValkeyServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from registry.models import Version

ROOT = Path(__file__).resolve().parents[2]
_READY_S = 30.0


@dataclass(frozen=True, slots=True)
class Stage:
    """The services that run, and where."""

    postgres: PostgresServer
    engine_url: str


class _Engine(BaseHTTPRequestHandler):
    """Answers every completion with the name it was asked for."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = json.dumps({"model": body["model"], "choices": []}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_args: object) -> None:
        """Say nothing: what is printed is the result."""


@contextmanager
def stage() -> Iterator[Stage]:
    """Run Postgres, Valkey and the engine; Django is set up for them and the database is migrated."""
    folder = Path(tempfile.mkdtemp(prefix="lorekeeper-bench-"))
    folder.chmod(0o711)
    postgres = PostgresServer(folder / "postgres", port=free_port(), passwords=PostgresPasswords.generate())
    valkey = ValkeyServer(folder / "valkey", port=free_port(), password=random_text())
    engine = ThreadingHTTPServer((LOOPBACK, 0), _Engine)
    engine.daemon_threads = True
    threading.Thread(target=engine.serve_forever, daemon=True).start()
    try:
        postgres.start()
        valkey.start()
        _set_up_django(postgres, valkey, folder)
        yield Stage(postgres, f"http://{LOOPBACK}:{engine.server_port}")
    finally:
        engine.shutdown()
        valkey.stop()
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _set_up_django(postgres: PostgresServer, valkey: ValkeyServer, folder: Path) -> None:
    os.environ.update(
        DJANGO_SETTINGS_MODULE="config.settings",
        LOREKEEPER_SECRET_KEY=random_text(),
        LOREKEEPER_DB_HOST=LOOPBACK,
        LOREKEEPER_DB_PORT=str(postgres.port),
        LOREKEEPER_DB_NAME=DATABASE,
        LOREKEEPER_DB_USER=OWNER,
        LOREKEEPER_DB_PASSWORD=postgres.passwords.of(OWNER),
        LOREKEEPER_BROKER_URL=valkey.url,
        LOREKEEPER_STORE="folder",
        LOREKEEPER_STORE_FOLDER=str(folder / "store"),
    )
    import django  # noqa: PLC0415  what it reads was set just now

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    call_command("migrate", verbosity=0)


@contextmanager
def gateway(postgres: PostgresServer) -> Iterator[str]:
    """Run a gateway process; gives its URL once it has read its first snapshot. The poll is too slow to help."""
    port = free_port()
    process = subprocess.Popen(
        (sys.executable, "-m", "gateway", "--host", LOOPBACK, "--port", str(port)),
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "LOREKEEPER_GATEWAY_DB_URL": postgres.url(GATEWAY),
            "LOREKEEPER_WEB_URL": f"http://{LOOPBACK}:9",
            "LOREKEEPER_GATEWAY_TOKEN": "lk_bench",
            "LOREKEEPER_SNAPSHOT_POLL": "600",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://{LOOPBACK}:{port}"
        _wait_until_ready(url)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=10)


def _wait_until_ready(url: str) -> None:
    transport = httpx.HTTPTransport(retries=5)
    deadline = time.monotonic() + _READY_S
    with httpx.Client(transport=transport, trust_env=False) as client:
        while time.monotonic() < deadline:
            try:
                if client.get(f"{url}/readyz").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass  # not listening yet
            time.sleep(0.1)
    raise TimeoutError(f"the gateway at {url} did not become ready")


def fill(count: int) -> None:
    """Put ``count`` further signed versions into the database, so that reading everything again takes its time."""
    from registry.models import Signature, Version  # noqa: PLC0415  Django was set up meanwhile
    from tests.factories.registry import digest_for, make_version  # noqa: PLC0415

    model = make_version()
    key = model.signature.key
    versions = [_copy(model, f"filler-{model.name}-{number}") for number in range(count)]
    Version.objects.bulk_create(versions, batch_size=1000)
    Signature.objects.bulk_create(
        [
            Signature(version=version, key=key, root_digest=version.root_digest, bundle="", attestation=digest_for("x"))
            for version in versions
        ],
        batch_size=1000,
    )


def _copy(model: Version, name: str) -> Version:
    from registry.models import Version  # noqa: PLC0415  as above

    return Version(
        adapter=model.adapter,
        name=name,
        base_revision=model.base_revision,
        uploader=model.uploader,
        root_digest=model.root_digest,
        engine_name=f"lk-{name}",
        state=model.state,
        state_changed_at=model.state_changed_at,
        rank=model.rank,
        validation_digest=model.validation_digest,
    )


def make_targets(engine_url: str, count: int) -> tuple[str, list[tuple[str, Version]]]:
    """An API key, and aliases of its tenant that each point at a version of their own, loaded on one node."""
    from django.utils import timezone  # noqa: PLC0415  Django was set up meanwhile

    from cachecontrol.models import Residency  # noqa: PLC0415
    from registry.services.tokens import create_tenant_token  # noqa: PLC0415
    from registry.states import Scope, TokenKind  # noqa: PLC0415
    from tests.factories.cachecontrol import make_node  # noqa: PLC0415
    from tests.factories.registry import make_actor, make_adapter, make_base_revision, make_version  # noqa: PLC0415
    from tests.factories.releases import make_alias  # noqa: PLC0415

    revision = make_base_revision()
    adapter = make_adapter(base_model=revision.base_model)
    node = make_node(base_revision=revision, engine_url=engine_url)
    versions = [make_version(adapter=adapter) for _number in range(count)]
    for version in versions:
        Residency.objects.create(
            node=node, version=version, desired="gpu", observed="loaded", state_changed_at=timezone.now()
        )
    made = create_tenant_token(
        actor=make_actor(), tenant=adapter.tenant, name="bench", kind=TokenKind.APPLICATION, scopes=[Scope.INFER]
    )
    return made.text, [(make_alias(version=version).name, version) for version in versions]
