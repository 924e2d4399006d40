"""Pytest plugin: real Postgres, Valkey and S3 for the tests, one of each per test session, started when first needed.

Loaded by `-p tests.services`, before Django's settings: importing it puts what they read into the environment. It
overwrites what was there, so that no test run can reach the database of a stack that its shell was set up for.

With xdist the services belong to the controller. A worker asks for one by a file in the shared folder, because a
worker that has nothing left to do ends while others still work.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from deploy.embedded.ports import LOOPBACK, free_port
from deploy.embedded.postgres import APP, DATABASE, GATEWAY, OWNER, SUPERUSER, PostgresPasswords, PostgresServer
from deploy.embedded.seaweed import PORT_NAMES, S3Credentials, SeaweedServer
from deploy.embedded.system.secret_files import random_text
from deploy.embedded.valkey import ValkeyServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from deploy.embedded.server import Server

_FOLDER_VARIABLE = "LOREKEEPER_TEST_SERVICES"
_START_SECONDS = 120.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Facts:
    """What every process of a test session has to agree on."""

    ports: dict[str, int]
    postgres: dict[str, str]
    s3: dict[str, str]
    valkey: str
    secret_key: str

    @classmethod
    def generate(cls) -> Facts:
        ports: dict[str, int] = {}
        for name in ("postgres", "valkey", *PORT_NAMES):
            ports[name] = free_port(avoid=ports.values())
        return cls(
            ports=ports,
            postgres=asdict(PostgresPasswords.generate()),
            s3=asdict(S3Credentials(random_text(octets=9), random_text(), random_text())),
            valkey=random_text(),
            secret_key=random_text(),
        )


class Services:
    """The three services of a test session, as seen by one of its processes."""

    def __init__(self, folder: Path, *, owned: bool) -> None:
        self.folder = folder
        self.owned = owned
        facts_file = folder / "facts.json"
        if owned:
            facts_file.write_text(json.dumps(asdict(Facts.generate())))
        self.facts = Facts(**json.loads(facts_file.read_text()))
        self.postgres = PostgresServer(
            folder / "postgres",
            port=self.facts.ports["postgres"],
            passwords=PostgresPasswords(**self.facts.postgres),
            durable=False,
        )
        self.valkey = ValkeyServer(folder / "valkey", port=self.facts.ports["valkey"], password=self.facts.valkey)
        self.s3 = SeaweedServer(folder / "s3", ports=self.facts.ports, credentials=S3Credentials(**self.facts.s3))
        self._started: dict[str, Server] = {}
        self._guard = threading.Lock()
        self._closed = threading.Event()

    def environment(self) -> dict[str, str]:
        """What Django's settings and the workers read, for these services."""
        return {
            "LOREKEEPER_DB_HOST": LOOPBACK,
            "LOREKEEPER_DB_PORT": str(self.facts.ports["postgres"]),
            "LOREKEEPER_DB_NAME": DATABASE,
            "LOREKEEPER_DB_USER": OWNER,
            "LOREKEEPER_DB_PASSWORD": self.facts.postgres["owner"],
            "LOREKEEPER_BROKER_URL": self.valkey.url,
            "LOREKEEPER_CACHE_URL": "",
            "LOREKEEPER_SECRET_KEY": self.facts.secret_key,
            "LOREKEEPER_STORE": "folder",
            "LOREKEEPER_STORE_FOLDER": str(self.folder / "store"),
            "LOREKEEPER_DEBUG": "0",
        }

    def ensure(self, name: str) -> None:
        """Start this service unless it runs; in an xdist worker, have the controller do it."""
        if self.owned:
            self._start(name)
        else:
            self._ask_for(name)

    def answer_workers(self) -> None:
        """Start what workers ask for, in a thread, until `close`."""
        threading.Thread(target=self._answer, name="test services", daemon=True).start()

    def close(self) -> None:
        """Stop what was started and remove the folder; only the owner does."""
        if not self.owned:
            return
        self._closed.set()
        with self._guard:
            for server in reversed(self._started.values()):
                server.stop()
            self._started.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, name: str) -> None:
        servers: dict[str, tuple[Server, Callable[[], None]]] = {
            "postgres": (self.postgres, self._open_for_tests),
            "valkey": (self.valkey, lambda: None),
            "s3": (self.s3, lambda: None),
        }
        server, finish = servers[name]
        with self._guard:
            if name not in self._started:
                server.start()
                self._started[name] = server
                finish()

    def _open_for_tests(self) -> None:
        """Let the owner create test databases, whose `public` schema is as closed as the real one's."""
        with psycopg.connect(self.postgres.url(SUPERUSER, database="template1"), autocommit=True) as connection:
            connection.execute(f"ALTER ROLE {OWNER} CREATEDB")
            connection.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
            connection.execute(f"GRANT USAGE ON SCHEMA public TO {APP}, {GATEWAY}")

    def _ask_for(self, name: str) -> None:
        (self.folder / f"{name}.wanted").touch()
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if (self.folder / f"{name}.ready").exists():
                return
            if (failed := self.folder / f"{name}.failed").exists():
                pytest.fail(f"{name} could not be started: {failed.read_text()}", pytrace=False)
            time.sleep(_POLL_SECONDS)
        pytest.fail(f"{name} was not started by the test session within {_START_SECONDS:.0f} s", pytrace=False)

    def _answer(self) -> None:
        while not self._closed.wait(_POLL_SECONDS):
            for wanted in list(self.folder.glob("*.wanted")):
                try:
                    self._start(wanted.stem)
                except Exception as error:  # noqa: BLE001  # whatever it was, the asking worker reports it
                    _publish(wanted.with_suffix(".failed"), str(error))
                else:
                    _publish(wanted.with_suffix(".ready"), "")
                wanted.unlink()


@pytest.fixture(scope="session")
def postgres() -> PostgresServer:
    """The session's Postgres; not to be stopped or killed, other tests use it too."""
    services.ensure("postgres")
    return services.postgres


@pytest.fixture(scope="session")
def valkey() -> ValkeyServer:
    """The session's Valkey; `valkey.url` is what LOREKEEPER_BROKER_URL holds."""
    services.ensure("valkey")
    return services.valkey


@pytest.fixture(scope="session")
def s3() -> SeaweedServer:
    """The session's S3 with one bucket, `s3.bucket`."""
    services.ensure("s3")
    return services.s3


class DatabaseFixture:
    """Registered after pytest-django, whose fixture of the same name it replaces."""

    @pytest.fixture(scope="session")
    @staticmethod
    def django_db_modify_db_settings(
        django_db_modify_db_settings_parallel_suffix: None, postgres: PostgresServer
    ) -> None:
        """Before Django creates its test database there has to be a server."""


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(DatabaseFixture(), "lorekeeper-services")
    if services.owned and config.getoption("numprocesses", None):
        services.answer_workers()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    services.close()


def _publish(file: Path, text: str) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(file)


def _session_services() -> Services:
    """In an xdist worker the services of its controller, else new ones."""
    if "PYTEST_XDIST_WORKER" in os.environ and _FOLDER_VARIABLE in os.environ:
        return Services(Path(os.environ[_FOLDER_VARIABLE]), owned=False)
    folder = Path(tempfile.mkdtemp(prefix="lorekeeper-tests-"))
    folder.chmod(0o711)
    os.environ[_FOLDER_VARIABLE] = str(folder)
    return Services(folder, owned=True)


services = _session_services()
os.environ.update(services.environment())
