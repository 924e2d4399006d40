"""A durable Postgres, full of what years leave behind; Django speaks to it as the application."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from deploy.embedded.ports import LOOPBACK, free_port
from deploy.embedded.postgres import APP, DATABASE, OWNER, SUPERUSER, PostgresPasswords, PostgresServer
from deploy.embedded.system.secret_files import random_text
from registry.signing.local_key import generate_key_file

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
_FILL = Path(__file__).parent / "fill.sql"


@dataclass(frozen=True, slots=True)
class Filled:
    """What there is: values for the parameters of addresses, and who may see all of it."""

    path: dict[str, str]
    email: str


@contextmanager
def stage(*, records: int, versions: int, folder: Path | None = None) -> Iterator[Filled]:
    """Run Postgres and fill it. With ``folder`` it stays there, and is not filled again the next time."""
    place = folder or Path(tempfile.mkdtemp(prefix="lorekeeper-bench-"))
    place.mkdir(exist_ok=True)
    place.chmod(0o711)
    postgres = PostgresServer(place / "postgres", port=free_port(), passwords=_passwords(place))
    try:
        postgres.start()
        _speak_to(postgres, place)
        yield _filled(postgres, place, records=records, versions=versions)
    finally:
        postgres.stop()
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)


def _passwords(place: Path) -> PostgresPasswords:
    known = place / "passwords.json"
    if not known.exists():
        known.touch(0o600)
        known.write_text(json.dumps(asdict(PostgresPasswords.generate())))
    return PostgresPasswords(**json.loads(known.read_text()))


def _speak_to(postgres: PostgresServer, place: Path) -> None:
    if not (place / "signing.pem").exists():
        generate_key_file(place / "signing.pem")
    os.environ.update(
        DJANGO_SETTINGS_MODULE="config.settings",
        LOREKEEPER_SECRET_KEY=random_text(),
        LOREKEEPER_DB_HOST=LOOPBACK,
        LOREKEEPER_DB_PORT=str(postgres.port),
        LOREKEEPER_DB_NAME=DATABASE,
        LOREKEEPER_STORE="folder",
        LOREKEEPER_STORE_FOLDER=str(place / "store"),
        LOREKEEPER_SIGNING_KEY=str(place / "signing.pem"),
    )
    owner = {"LOREKEEPER_DB_USER": OWNER, "LOREKEEPER_DB_PASSWORD": postgres.passwords.of(OWNER)}
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(migrate, cwd=ROOT, env={**os.environ, **owner}, check=True)
    os.environ.update(LOREKEEPER_DB_USER=APP, LOREKEEPER_DB_PASSWORD=postgres.passwords.of(APP))
    import django  # noqa: PLC0415  what it reads was set just now

    django.setup()


def _filled(postgres: PostgresServer, place: Path, *, records: int, versions: int) -> Filled:
    known = place / "filled.json"
    if not known.exists():
        began = time.perf_counter()
        made = _world()
        address = postgres.url(SUPERUSER, database=DATABASE)
        with psycopg.connect(address, cursor_factory=psycopg.ClientCursor) as connection:
            connection.execute(_FILL.read_bytes(), {"records": records, "versions": versions})
        with psycopg.connect(address, autocommit=True) as connection:
            # As autovacuum would have left it.
            connection.execute("VACUUM ANALYZE")
        known.write_text(json.dumps(asdict(made)))
        took = time.perf_counter() - began
        sys.stdout.write(f"{records:,} audit records and {versions:,} versions made in {took:.0f} s\n")
    return Filled(**json.loads(known.read_text()))


def _world() -> Filled:
    """One of everything that addresses name, as the tests have it."""
    from registry import dispatch  # noqa: PLC0415  Django was set up meanwhile
    from registry.models import Person  # noqa: PLC0415
    from registry.services.stores import artifact_store  # noqa: PLC0415
    from registry.services.tokens import authenticate_token  # noqa: PLC0415
    from tests.factories.api_world import build_world  # noqa: PLC0415

    dispatch._send = lambda *_facts: None  # noqa: SLF001  nobody listens
    artifact_store().ensure_ready()
    world = build_world()
    token = world.tokens["sovereign"] or ""
    person = Person.objects.get(email=authenticate_token(text=token).id)
    return Filled(path=world.path, email=person.email)
