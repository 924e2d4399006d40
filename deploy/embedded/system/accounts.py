"""Postgres refuses to run as root, so root lends it an account without rights."""

from __future__ import annotations

import logging
import os
import pwd
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deploy.embedded.errors import NotProvisioned

if TYPE_CHECKING:
    from pathlib import Path

_CANDIDATES = ("postgres", "pgserver", "nobody")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    uid: int
    gid: int


def unprivileged_account() -> Account | None:
    """The account to run Postgres as; None when this process isn't root and can run it as itself.

    Raises:
        NotProvisioned: root has none of the accounts that every system has.

    """
    if os.geteuid() != 0:
        return None
    for name in _CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)
    raise NotProvisioned(f"Postgres does not run as root, and there is none of the accounts {', '.join(_CANDIDATES)}")


def let_through(folder: Path) -> None:
    """Let other accounts pass (not list) the folders above this one: the lent account has to reach its own files."""
    for parent in folder.resolve().parents:
        mode = parent.stat().st_mode
        if not mode & stat.S_IXOTH:
            _log.warning("%s: other accounts may now pass through (o+x), Postgres has to reach %s", parent, folder)
            parent.chmod(mode | stat.S_IXOTH)
