from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from registry.signing.local_key import LocalKeySigner
from tests.unit.workers.node.kit import Rig


@pytest.fixture(scope="session")
def key() -> LocalKeySigner:
    return LocalKeySigner(ec.generate_private_key(ec.SECP256R1()))


@pytest.fixture
def rig(tmp_path: Path, key: LocalKeySigner) -> Rig:
    return Rig(tmp_path / "cache", key)
