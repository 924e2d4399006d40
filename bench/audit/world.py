"""A migrated, durable Postgres of its own, a folder store and a signing key; Django speaks to it as the application."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.embedded.ports import LOOPBACK, free_port
from deploy.embedded.postgres import APP, DATABASE, OWNER, PostgresPasswords, PostgresServer
from deploy.embedded.system.secret_files import random_text
from registry.signing.local_key import generate_key_file

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def stage() -> Iterator[PostgresServer]:
    """Run Postgres; Django is set up for it and the database is migrated."""
    folder = Path(tempfile.mkdtemp(prefix="lorekeeper-bench-"))
    folder.chmod(0o711)
    postgres = PostgresServer(folder / "postgres", port=free_port(), passwords=PostgresPasswords.generate())
    generate_key_file(folder / "signing.pem")
    try:
        postgres.start()
        _set_up(postgres, folder)
        yield postgres
    finally:
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _set_up(postgres: PostgresServer, folder: Path) -> None:
    os.environ.update(
        DJANGO_SETTINGS_MODULE="config.settings",
        LOREKEEPER_SECRET_KEY=random_text(),
        LOREKEEPER_DB_HOST=LOOPBACK,
        LOREKEEPER_DB_PORT=str(postgres.port),
        LOREKEEPER_DB_NAME=DATABASE,
        LOREKEEPER_STORE="folder",
        LOREKEEPER_STORE_FOLDER=str(folder / "store"),
        LOREKEEPER_SIGNING_KEY=str(folder / "signing.pem"),
    )
    owner = {"LOREKEEPER_DB_USER": OWNER, "LOREKEEPER_DB_PASSWORD": postgres.passwords.of(OWNER)}
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(migrate, cwd=ROOT, env={**os.environ, **owner}, check=True)
    os.environ.update(LOREKEEPER_DB_USER=APP, LOREKEEPER_DB_PASSWORD=postgres.passwords.of(APP))
    import django  # noqa: PLC0415  what it reads was set just now

    django.setup()
