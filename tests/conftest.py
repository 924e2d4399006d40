"""Fixtures for every test that uses Django: a folder store and a signing key of its own, and no broker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db.backends.postgresql.operations import DatabaseOperations
from django.test import TransactionTestCase

from config.messages.compile import compile_all
from registry import dispatch
from registry.services import keys, stores
from registry.signing.local_key import LocalKeySigner, generate_key_file
from registry.stores.ports import ArtifactStore

# What migrations fill and no test changes. Emptied, it would have to be made anew after each test that commits.
_KEPT = {"django_content_type", "auth_permission"}


def pytest_configure() -> None:
    """Pages are read in every language, with the translations as they are now."""
    compile_all()


@pytest.fixture(autouse=True, scope="session")
def _tests_may_empty_the_audit_log() -> Iterator[None]:
    """Django empties every table after a test that commits; the log's own guard has to step aside for that alone."""
    flush, sql_flush = DatabaseOperations.execute_sql_flush, DatabaseOperations.sql_flush

    def guarded(self: DatabaseOperations, sql_list: list[str]) -> None:
        guard = "ALTER TABLE registry_auditrecord %s TRIGGER audit_no_truncate"
        flush(self, [guard % "DISABLE", *sql_list, guard % "ENABLE ALWAYS"])

    def of_the_written(self: DatabaseOperations, style: Any, tables: list[str], **facts: Any) -> list[str]:
        return sql_flush(self, style, [table for table in tables if table not in _KEPT], **facts)

    def emptied(self: TransactionTestCase) -> None:
        call_command("flush", verbosity=0, interactive=False, reset_sequences=False, inhibit_post_migrate=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "execute_sql_flush", guarded)
        patch.setattr(DatabaseOperations, "sql_flush", of_the_written)
        patch.setattr(TransactionTestCase, "_fixture_teardown", emptied)
        yield


@pytest.fixture(scope="session")
def signing_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "signing.pem"
    generate_key_file(path)
    return path


@pytest.fixture
def signer(settings: Any, signing_key: Path) -> Iterator[LocalKeySigner]:
    settings.SIGNING_KEYS = [str(signing_key)]
    keys.signer_at.cache_clear()
    yield LocalKeySigner.from_pem_file(signing_key)
    keys.signer_at.cache_clear()


@pytest.fixture
def store(settings: Any, tmp_path: Path) -> Iterator[ArtifactStore]:
    """The folder store, fresh for the test."""
    settings.STORE = {**settings.STORE, "kind": "folder", "folder": str(tmp_path / "store")}
    settings.PUBLIC_URL = "http://testserver"
    _forget_stores()
    made = stores.artifact_store()
    made.ensure_ready()
    yield made
    _forget_stores()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Nudges that would have gone to the broker, in order: (task name, arguments)."""
    messages: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(dispatch, "_send", lambda task, _queue, kwargs, _after_s: messages.append((task, kwargs)))
    return messages


def _forget_stores() -> None:
    stores.artifact_store.cache_clear()
    stores.checkpoint_store.cache_clear()
    stores.folder_store.cache_clear()
