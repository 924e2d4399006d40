import os
from pathlib import Path

import pytest

from deploy.embedded.errors import AlreadyRunning
from deploy.embedded.system.lock import FolderLock, holder_of


def test_a_second_owner_of_a_folder_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    first = FolderLock(tmp_path / "lock", what="the folder")
    first.acquire()
    with pytest.raises(AlreadyRunning, match=f"the folder is already in use by process {os.getpid()}"):
        FolderLock(tmp_path / "lock", what="the folder").acquire()
    assert holder_of(tmp_path / "lock") == os.getpid()
    first.release()


def test_a_released_folder_is_free_for_the_next(tmp_path: Path) -> None:
    first = FolderLock(tmp_path / "lock", what="the folder")
    first.acquire()
    first.release()
    assert holder_of(tmp_path / "lock") is None
    second = FolderLock(tmp_path / "lock", what="the folder")
    second.acquire()
    second.release()


def test_a_folder_that_was_never_used_has_no_holder(tmp_path: Path) -> None:
    assert holder_of(tmp_path / "lock") is None
