"""The whole stack as one object: started, waited for, looked into, hurt (by tests) and stopped."""

from __future__ import annotations

import json
import logging
import signal
import threading
import time
from typing import TYPE_CHECKING, Self

from deploy.embedded.child import end_leftovers
from deploy.embedded.command_server import CommandServer
from deploy.embedded.errors import EmbeddedError, ServerFailed
from deploy.embedded.facts import settle_facts
from deploy.embedded.plan import BUCKET, build_plan
from deploy.embedded.postgres import PostgresServer
from deploy.embedded.seaweed import SeaweedServer
from deploy.embedded.specs import ProcessSpec, StepSpec, levels, resolve
from deploy.embedded.system.lock import FolderLock
from deploy.embedded.system.secret_files import write_secret
from deploy.embedded.units import CALM_SECONDS, ServerUnit, StepUnit, Unit
from deploy.embedded.valkey import ValkeyServer
from deploy.embedded.warden import Warden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from deploy.embedded.facts import EngineOptions, StackFacts
    from deploy.embedded.output import Console
    from deploy.embedded.server import Server
    from deploy.embedded.specs import Spec

_log = logging.getLogger(__name__)
_READY_SECONDS = 600.0
_POLL_SECONDS = 0.05
_LOOK_SECONDS = 5.0
_ENDING = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


class Stack:
    """Postgres, Valkey, S3 and the processes of the plan, in one data folder.

    `settings` are LOREKEEPER_ variables that every process gets on top of its own (timings, for tests);
    `durable=False` lets Postgres forget its last transactions in a crash, and `calm_seconds=0` starts a process again
    at once however often it ends, for faster tests.
    """

    def __init__(
        self,
        data: Path,
        *,
        engine: EngineOptions | None = None,
        console: Console | None = None,
        admin_email: str = "admin@example.org",
        settings: Mapping[str, str] | None = None,
        plan: Callable[[StackFacts], tuple[Spec, ...]] = build_plan,
        durable: bool = True,
        calm_seconds: float = CALM_SECONDS,
    ) -> None:
        self.data = data.resolve()
        self._engine = engine
        self._calm_seconds = calm_seconds
        self._console = console
        self._admin_email = admin_email
        self._settings = dict(settings or {})
        self._plan = plan
        self._durable = durable
        self._lock = FolderLock(self.data / "lock", what=str(self.data))
        self._warden = Warden()
        self._specs: dict[str, Spec] = {}
        self._units: dict[str, Unit] = {}
        self._order: list[list[str]] = []
        self._failure: EmbeddedError | None = None
        self._stopping = threading.Event()
        self._watcher: threading.Thread | None = None
        self._facts: StackFacts | None = None

    @property
    def facts(self) -> StackFacts:
        """Ports, secrets and folders.

        Raises:
            EmbeddedError: before `start`.

        """
        if self._facts is None:
            raise EmbeddedError("the stack has not been started")
        return self._facts

    @property
    def urls(self) -> dict[str, str]:
        """Base URLs: web, gateway, s3, and engine when there is one."""
        urls = {name: self.facts.url(name) for name in ("web", "gateway")}
        urls["s3"] = self.facts.url("s3.http")
        if self.facts.engine is not None:
            urls["engine"] = self.facts.url("engine")
        return urls

    @property
    def stopping(self) -> bool:
        """Whether a stop was asked for, or is under way."""
        return self._stopping.is_set()

    @property
    def names(self) -> tuple[str, ...]:
        """Of every supervised process."""
        return tuple(name for name, unit in self._units.items() if isinstance(unit, ServerUnit))

    def start(self) -> None:
        """Begin to start everything, and return at once.

        Raises:
            AlreadyRunning: another stack runs in this folder.

        """
        self.data.mkdir(parents=True, exist_ok=True)
        self._lock.acquire()
        self._stopping.clear()
        self._failure = None
        try:
            self._begin()
        except BaseException:
            self.stop()
            raise

    def wait_ready(self, *names: str, seconds: float = _READY_SECONDS) -> None:
        """Wait until these parts (default: all) are ready; after `kill`, until they are again.

        Raises:
            EmbeddedError: one failed to start, the stack was stopped, or time is up.

        """
        wanted = [self._units[name] for name in names or self._units]
        deadline = time.monotonic() + seconds
        while waiting := [unit.name for unit in wanted if not unit.ready.is_set()]:
            if self._stopping.is_set():
                raise self._failure or EmbeddedError("the stack was stopped before it was ready")
            if time.monotonic() > deadline:
                raise EmbeddedError(f"not ready after {seconds:.0f} s: {', '.join(waiting)}")
            self._stopping.wait(_POLL_SECONDS)

    def stop(self) -> None:
        """Stop everything, those first that need others. Idempotent; afterwards nothing of it runs."""
        self._stopping.set()
        for group in reversed(self._order):
            closers = [threading.Thread(target=self._units[name].finish, name=f"stop {name}") for name in group]
            for closer in closers:
                closer.start()
            for closer in closers:
                closer.join()
        if self._watcher is not None:
            self._watcher.join()
        self._warden.close()
        self._lock.release()

    def request_stop(self) -> None:
        """Wake up who waits in `wait_ready` or `wait_stopped`; `stop` is still to be called."""
        self._stopping.set()

    @property
    def failure(self) -> EmbeddedError | None:
        """Why the stack can't go on; it is then to be stopped."""
        return self._failure

    def wait_stopped(self) -> None:
        """Wait until `request_stop` or `stop` is called, or a part has failed for good."""
        self._stopping.wait()

    def server(self, name: str) -> Server:
        """The supervised process of this name."""
        unit = self._units[name]
        if not isinstance(unit, ServerUnit):
            raise EmbeddedError(f"{name} is a step, not a process")
        return unit.server

    def pid_of(self, name: str) -> int:
        """The pid of the running process; raises ServerFailed while it doesn't run."""
        return self.server(name).pid

    def kill(self, name: str, number: int = signal.SIGKILL, *, group: bool = False) -> None:
        """Send a signal to a process (or to its process group); one that ends it makes `wait_ready` wait again."""
        if number in _ENDING:
            self._units[name].ready.clear()
        self.server(name).kill(number, group=group)

    def env_for(self, name: str) -> dict[str, str]:
        """The whole environment of a process or step of the plan, for running a command in its place."""
        return resolve(self._specs[name].environment)

    def describe(self) -> dict[str, object]:
        """What a ready file says: URLs, pids, and where the tokens are."""
        return {
            "data": str(self.data),
            "urls": self.urls,
            "pids": {name: self.server(name).pid for name in self.names if self.server(name).running},
            "tokens": str(self.facts.secrets.bootstrap),
            "trusted_keys": str(self.facts.secrets.trusted_keys),
            "logs": str(self.data / "logs"),
        }

    def write_ready_file(self, file: Path) -> None:
        """Say that all is ready, in JSON."""
        write_secret(file, json.dumps(self.describe(), indent=2) + "\n")

    def __enter__(self) -> Self:
        self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def _begin(self) -> None:
        self._end_leftovers()
        self._facts = settle_facts(
            self.data, engine=self._engine, admin_email=self._admin_email, settings=self._settings
        )
        self._specs = {spec.name: spec for spec in self._plan(self._facts)}
        self._units = {unit.name: unit for unit in self._make_units(self._facts)}
        self._order = levels({unit.name: unit.needs for unit in self._units.values()})
        if self._facts.engine is None:
            _log.info("no engine was given, so there is no engine and no node agent")
        for unit in self._units.values():
            unit.begin([self._units[name] for name in unit.needs])
        self._watcher = threading.Thread(target=self._watch, name="watcher", daemon=True)
        self._watcher.start()

    def _end_leftovers(self) -> None:
        """Before ports are chosen: what an earlier stack left may still hold them."""
        for record in (*self.data.glob("*/*.session.json"), *self.data.glob("processes/*/*.session.json")):
            end_leftovers(record)

    def _make_units(self, facts: StackFacts) -> Iterable[Unit]:
        for server in self._services(facts):
            yield ServerUnit(server, (), on_failure=self._fail, calm_seconds=self._calm_seconds)
        for spec in self._specs.values():
            yield self._make_unit(spec)

    def _services(self, facts: StackFacts) -> tuple[Server, ...]:
        data, secrets, warden, console = self.data, facts.secrets, self._warden, self._console
        log_folder = data / "logs"
        return (
            PostgresServer(
                data / "postgres",
                port=facts.ports["postgres"],
                passwords=secrets.postgres,
                durable=self._durable,
                warden=warden,
                console=console,
                log_folder=log_folder,
            ),
            ValkeyServer(
                data / "valkey",
                port=facts.ports["valkey"],
                password=secrets.valkey,
                warden=warden,
                console=console,
                log_folder=log_folder,
            ),
            SeaweedServer(
                data / "s3",
                ports=facts.ports,
                credentials=secrets.s3,
                bucket=BUCKET,
                warden=warden,
                console=console,
                log_folder=log_folder,
            ),
        )

    def _make_unit(self, spec: Spec) -> Unit:
        folder, log_folder = self.data / "processes" / spec.name, self.data / "logs"
        match spec:
            case ProcessSpec():
                server = CommandServer(spec, folder, warden=self._warden, console=self._console, log_folder=log_folder)
                return ServerUnit(server, spec.needs, on_failure=self._fail, calm_seconds=self._calm_seconds)
            case StepSpec():
                return StepUnit(
                    spec,
                    folder,
                    warden=self._warden,
                    console=self._console,
                    log_folder=log_folder,
                    on_failure=self._fail,
                )

    def _fail(self, name: str, error: Exception) -> None:
        _log.error("%s: %s", name, error)
        if self._failure is None:
            self._failure = error if isinstance(error, EmbeddedError) else ServerFailed(f"{name}: {error!r}")
        self._stopping.set()

    def _watch(self) -> None:
        """Look every few seconds whether the warden is there, and whether those answer that were ready."""
        silent: set[str] = set()
        while not self._stopping.wait(_LOOK_SECONDS):
            self._warden.ensure_alive()
            for name in self.names:
                self._look_at(name, silent)

    def _look_at(self, name: str, silent: set[str]) -> None:
        if not self._units[name].ready.is_set():
            return
        answers = self.server(name).health()
        if answers and name in silent:
            silent.discard(name)
            _log.info("%s answers again", name)
        elif not answers and name not in silent and self._units[name].ready.is_set():
            silent.add(name)
            _log.warning("%s runs, but does not answer", name)
