from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from registry.signing.local_key import LocalKeySigner
from tests.fakes.engine_vllm import FakeEngineServer
from tests.unit.workers.node.kit import BASE


@pytest.fixture(scope="session")
def key() -> LocalKeySigner:
    return LocalKeySigner(ec.generate_private_key(ec.SECP256R1()))


@pytest.fixture
def fake() -> Iterator[FakeEngineServer]:
    with FakeEngineServer(base=BASE, cpu_slots=2, gpu_slots=1, max_rank=16) as server:
        yield server


@pytest.fixture
def cache_root(tmp_path: Path) -> Path:
    return tmp_path / "cache"
