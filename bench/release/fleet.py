"""Gateways with web and an engine that answers at once, aliases to roll back, and connections that ask all the time."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import httptools
import httpx

from deploy.embedded.ports import LOOPBACK, free_port
from deploy.embedded.postgres import GATEWAY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bench.revocation.world import Stage
    from registry.actors import Actor
    from registry.models import Tenant, Version

ROOT = Path(__file__).resolve().parents[2]
TENANT = "bench"
_READY_S = 60.0
_END_S = 15.0
_SLOTS = 64
_PATH = "/v1/chat/completions"
_OK = 200


@dataclass(frozen=True, slots=True)
class Button:
    """An alias to be rolled back: the version to get back to and the bad one, by the names that engines know."""

    alias: str
    good: str
    bad: str
    bad_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Where everything answers, whose keys these are, and what may be rolled back."""

    web: str
    gateways: list[str]
    person: str
    application: str
    buttons: list[Button]


@contextmanager
def fleet(found: Stage, *, gateways: int, buttons: int) -> Iterator[Fleet]:
    """Run web and gateways as in production over so many aliases. A poll is too slow to help any gateway."""
    with ExitStack() as closing:
        made, person, application = _rows(_engine(closing), buttons)
        web, ports = free_port(), [free_port() for _number in range(gateways)]
        address = ("--bind", f"{LOOPBACK}:{web}", "--workers", "1", "--threads", "8", "--keep-alive", "30")
        _run(
            *("-m", "gunicorn", "config.wsgi:application", *address, "--no-control-socket"),
            environment={**os.environ, "LOREKEEPER_RATE_LIMIT": "0"},
            closing=closing,
        )
        for each in ports:
            _run(
                *("-m", "gateway", "--host", LOOPBACK, "--port", str(each)),
                environment={
                    "PATH": os.environ["PATH"],
                    "LOREKEEPER_GATEWAY_DB_URL": found.postgres.url(GATEWAY),
                    "LOREKEEPER_WEB_URL": f"http://{LOOPBACK}:{web}",
                    "LOREKEEPER_GATEWAY_TOKEN": "lk_bench",
                    "LOREKEEPER_SNAPSHOT_POLL": "600",
                },
                closing=closing,
            )
        urls = [f"http://{LOOPBACK}:{each}" for each in (web, *ports)]
        for url in urls:
            _wait_until_ready(url)
        yield Fleet(web=urls[0], gateways=urls[1:], person=person, application=application, buttons=made)


def _engine(closing: ExitStack) -> str:
    process = subprocess.Popen((sys.executable, "-m", "bench.gateway.stub"), cwd=ROOT, stdout=subprocess.PIPE)
    _end_with(closing, process)
    told = b"" if process.stdout is None else process.stdout.readline()
    return f"http://{LOOPBACK}:{json.loads(told)[0]}"


def _run(*arguments: str, environment: Mapping[str, str], closing: ExitStack) -> None:
    process = subprocess.Popen(
        (sys.executable, *arguments),
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _end_with(closing, process)


def _end_with(closing: ExitStack, process: subprocess.Popen[bytes]) -> None:
    closing.callback(process.wait, timeout=_END_S)
    closing.callback(process.terminate)


def _wait_until_ready(url: str) -> None:
    deadline = time.monotonic() + _READY_S
    with httpx.Client(trust_env=False) as client:
        while time.monotonic() < deadline:
            try:
                if client.get(f"{url}/readyz").status_code == _OK:
                    return
            except httpx.TransportError:
                pass  # not listening yet
            time.sleep(0.1)
    raise TimeoutError(f"{url} did not become ready")


def _rows(engine_url: str, count: int) -> tuple[list[Button], str, str]:
    """Aliases of two loaded versions each, and the keys of a release manager and of an application."""
    from tests.factories.cachecontrol import make_node  # noqa: PLC0415  Django was set up meanwhile
    from tests.factories.registry import make_adapter, make_base_revision, make_tenant, make_version  # noqa: PLC0415
    from tests.factories.releases import make_alias  # noqa: PLC0415

    revision, tenant = make_base_revision(), make_tenant(name=TENANT)
    adapter = make_adapter(tenant=tenant, base_model=revision.base_model)
    node = make_node(
        base_revision=revision, engine_url=engine_url, gpu_slots=_SLOTS, cpu_slots=_SLOTS + 2 * count, disk_bytes=10**12
    )
    pairs = [(make_version(adapter=adapter), make_version(adapter=adapter)) for _number in range(count)]
    _load(node.pk, [version for pair in pairs for version in pair])
    buttons = [
        Button(make_alias(version=good).name, good.engine_name, bad.engine_name, str(bad.pk)) for good, bad in pairs
    ]
    return buttons, *_keys(tenant)


def _load(node_id: int, versions: Sequence[Version]) -> None:
    from cachecontrol.models import Residency  # noqa: PLC0415  as above

    Residency.objects.bulk_create(
        Residency(
            node_id=node_id,
            version=version,
            desired="gpu",
            observed="loaded",
            generation=1,
            acted_generation=1,
            state_changed_at=version.state_changed_at,
        )
        for version in versions
    )


def _keys(tenant: Tenant) -> tuple[str, str]:
    from registry.services.tokens import PERSON_SCOPES, create_tenant_token  # noqa: PLC0415  as above
    from registry.states import Role, Scope, TokenKind  # noqa: PLC0415
    from tests.factories.registry import make_actor, make_person  # noqa: PLC0415

    manager = make_person(roles={tenant: [Role.RELEASE_MANAGER]})
    person = create_tenant_token(
        actor=make_actor(),
        tenant=tenant,
        name="bench",
        kind=TokenKind.PERSON,
        scopes=PERSON_SCOPES,
        person_email=manager.email,
    )
    application = create_tenant_token(
        actor=make_actor(), tenant=tenant, name="bench app", kind=TokenKind.APPLICATION, scopes=[Scope.INFER]
    )
    return person.text, application.text


def manager() -> Actor:
    """Who releases in the bench's tenant."""
    from registry.models import Person  # noqa: PLC0415  as above
    from tests.factories.registry import make_actor  # noqa: PLC0415

    return make_actor(Person.objects.get(memberships__tenant__name=TENANT))


@dataclass(frozen=True, slots=True)
class Answer:
    """When a request began and ended (monotonic seconds), and whether the bad version answered; None: nobody did."""

    began: float
    ended: float
    is_bad: bool | None


@dataclass(slots=True)
class Crowd:
    """Connections to each gateway, each of which asks for the button's alias again ``pause_s`` after an answer."""

    fleet: Fleet
    each: int
    pause_s: float
    button: Button = field(init=False)
    answers: dict[str, list[Answer]] = field(init=False)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    is_over: bool = False

    def look_at(self, button: Button) -> None:
        """Ask for this one from now on, and forget what was answered."""
        self.button = button
        self.answers = {url: [] for url in self.fleet.gateways}

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        for url in self.fleet.gateways:
            for _number in range(self.each):
                await loop.create_connection(partial(_Asker, self, url), LOOPBACK, int(url.rpartition(":")[2]))

    def request(self) -> bytes:
        body = json.dumps({"model": self.button.alias, "messages": [{"role": "user", "content": "hi"}]}).encode()
        head = (
            f"POST {_PATH} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {self.fleet.application}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


class _Asker(asyncio.Protocol):
    def __init__(self, crowd: Crowd, url: str) -> None:
        self._crowd, self._url = crowd, url
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)
        self._ask()

    def _ask(self) -> None:
        if self._crowd.is_over or self._transport.is_closing():
            self._transport.close()
            return
        self._button, self._body = self._crowd.button, b""
        self._began = time.monotonic()
        self._transport.write(self._crowd.request())

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._button is self._crowd.button:
            is_bad = self._who() if self._parser.get_status_code() == _OK else None
            self._crowd.answers[self._url].append(Answer(self._began, time.monotonic(), is_bad))
            self._crowd.heard.set()
        self._loop.call_later(self._crowd.pause_s, self._ask)

    def _who(self) -> bool | None:
        """By the name under which the engine was asked."""
        if self._button.bad.encode() in self._body:
            return True
        return False if self._button.good.encode() in self._body else None
