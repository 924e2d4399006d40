import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for unix sockets and which Postgres's account may pass through."""
    made = Path(tempfile.mkdtemp(prefix="lorekeeper-embedded-"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made, ignore_errors=True)
