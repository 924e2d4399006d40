import os
import stat
from pathlib import Path

import pytest

from deploy.embedded.system.accounts import let_through, unprivileged_account


def test_without_root_postgres_runs_as_ourselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert unprivileged_account() is None


def test_root_lends_postgres_an_account_without_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    account = unprivileged_account()
    assert account is not None
    assert account.uid != 0


def test_other_accounts_may_pass_through_a_closed_folder_but_not_list_it(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    let_through(closed / "postgres")
    assert stat.S_IMODE(closed.stat().st_mode) == 0o701
