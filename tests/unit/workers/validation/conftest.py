from pathlib import Path

import pytest

from tests.unit.workers.validation.adapters import Upload, pairs


@pytest.fixture
def upload(tmp_path: Path) -> Upload:
    """An empty folder."""
    return Upload(tmp_path / "adapter")


@pytest.fixture
def good(upload: Upload) -> Upload:
    """A sound adapter of rank 8 on two layers."""
    return upload.weights(pairs()).config()
