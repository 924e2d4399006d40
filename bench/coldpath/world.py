"""Processes and rows: web and gateway as in production, versions that are loaded nowhere, one node that is full."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from deploy.embedded.ports import LOOPBACK, free_port
from deploy.embedded.postgres import GATEWAY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.revocation.world import Stage

ROOT = Path(__file__).resolve().parents[2]
_READY_S = 60.0
_PLACES = 8


@dataclass(slots=True)
class Arrivals:
    """When a request for each engine name arrived at the engine."""

    at: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def served(self) -> Iterator[str]:
        arrivals = self.at

        class Engine(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                now = time.monotonic()
                name = json.loads(self.rfile.read(int(self.headers["content-length"])))["model"]
                arrivals.setdefault(name, now)
                answer = json.dumps({"model": name, "choices": []}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_args: object) -> None:
                """Say nothing: what is printed is the result."""

        server = ThreadingHTTPServer((LOOPBACK, 0), Engine)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{LOOPBACK}:{server.server_port}"
        server.shutdown()


@dataclass(frozen=True, slots=True)
class World:
    found: Stage
    engine_url: str
    arrivals: Arrivals

    @property
    def broker_url(self) -> str:
        return os.environ["LOREKEEPER_BROKER_URL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cold:
    """A node with its token, and a tenant's key with aliases of versions that are loaded nowhere."""

    node: str
    node_token: str
    gateway_token: str
    key: str
    targets: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Urls:
    web: str
    gateway: str


def cold_world(engine_url: str, count: int) -> Cold:
    """``count`` aliases, and a node with so few places that all but the first make room among what was used before."""
    from cachecontrol.models import Node  # noqa: PLC0415  Django was set up meanwhile
    from registry.services.tokens import create_platform_token, create_tenant_token  # noqa: PLC0415
    from registry.states import Scope, TokenKind  # noqa: PLC0415
    from tests.factories.cachecontrol import make_policy, register  # noqa: PLC0415
    from tests.factories.registry import (  # noqa: PLC0415
        make_actor,
        make_adapter,
        make_base_revision,
        make_person,
        make_version,
    )
    from tests.factories.releases import make_alias  # noqa: PLC0415

    revision = make_base_revision()
    adapter = make_adapter(base_model=revision.base_model)
    made = register(base_revision=revision, engine_url=engine_url, cpu_slots=_PLACES)
    Node.objects.filter(pk=made.node.pk).update(status="up", engine_healthy=True, boot_id="bench")
    admin = make_actor(make_person(is_platform_admin=True))
    make_policy(
        base_model=revision.base_model,
        more="loading: {min_residency_s: 0}\nprewarm: {on_release: false}\n",
        approver=admin,
    )
    versions = [make_version(adapter=adapter) for _number in range(count)]
    key = create_tenant_token(
        actor=make_actor(), tenant=adapter.tenant, name="bench", kind=TokenKind.APPLICATION, scopes=[Scope.INFER]
    )
    gateway = create_platform_token(
        actor=make_actor(), name=f"gateway {made.node}", kind=TokenKind.GATEWAY, scopes=[Scope.DEMAND]
    )
    return Cold(
        node=made.node.name,
        node_token=made.token,
        gateway_token=gateway.text,
        key=key.text,
        targets=[(make_alias(version=version).name, version.engine_name) for version in versions],
    )


@contextmanager
def web_and_gateway(found: Stage, cold: Cold) -> Iterator[Urls]:
    """Run both; the gateway's poll is too slow to help."""
    from registry.signing.local_key import generate_key_file  # noqa: PLC0415  needed here alone

    web, gateway = free_port(), free_port()
    signing_key = Path(os.environ["LOREKEEPER_STORE_FOLDER"]).parent / "signing.pem"
    if not signing_key.exists():
        generate_key_file(signing_key)
    urls = Urls(f"http://{LOOPBACK}:{web}", f"http://{LOOPBACK}:{gateway}")
    address = ("--bind", f"{LOOPBACK}:{web}", "--workers", "1", "--threads", "8", "--keep-alive", "30")
    processes = [
        _run(
            "-m",
            "gunicorn",
            "config.wsgi:application",
            *address,
            "--no-control-socket",
            environment={**os.environ, "LOREKEEPER_SIGNING_KEY": str(signing_key)},
        ),
        _run(
            *("-m", "gateway", "--host", LOOPBACK, "--port", str(gateway)),
            environment={
                "PATH": os.environ["PATH"],
                "LOREKEEPER_GATEWAY_DB_URL": found.postgres.url(GATEWAY),
                "LOREKEEPER_WEB_URL": urls.web,
                "LOREKEEPER_GATEWAY_TOKEN": cold.gateway_token,
                "LOREKEEPER_SNAPSHOT_POLL": "600",
            },
        ),
    ]
    try:
        for url in (urls.web, urls.gateway):
            _wait_until_ready(url)
        yield urls
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=15)


def _run(*arguments: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        (sys.executable, *arguments),
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _wait_until_ready(url: str) -> None:
    deadline = time.monotonic() + _READY_S
    with httpx.Client(transport=httpx.HTTPTransport(retries=5), trust_env=False) as client:
        while time.monotonic() < deadline:
            try:
                if client.get(f"{url}/readyz").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass  # not listening yet
            time.sleep(0.1)
    raise TimeoutError(f"{url} did not become ready")
