from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from registry.signing.bundle import ReleaseClaims
from registry.signing.local_key import LocalKeySigner
from registry.signing.manifest import SignedFile, root_digest
from registry.signing.verify import TrustedKeys

FILES = (
    SignedFile("README.md", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    SignedFile("adapter_config.json", 12, "1" * 64),
    SignedFile("adapter_model.safetensors", 34, "2" * 64),
)


@pytest.fixture(scope="session")
def signer() -> LocalKeySigner:
    return LocalKeySigner(ec.generate_private_key(ec.SECP256R1()))


@pytest.fixture(scope="session")
def other_signer() -> LocalKeySigner:
    return LocalKeySigner(ec.generate_private_key(ec.SECP256R1()))


@pytest.fixture(scope="session")
def keys(signer: LocalKeySigner) -> TrustedKeys:
    return TrustedKeys.from_pem(signer.public_pem())


@pytest.fixture(scope="session")
def files() -> tuple[SignedFile, ...]:
    return FILES


@pytest.fixture(scope="session")
def make_claims() -> Callable[..., ReleaseClaims]:
    def make(files: tuple[SignedFile, ...] = FILES, **changes: object) -> ReleaseClaims:
        claims: dict[str, object] = {
            "tenant": "acme",
            "adapter": "support-tone",
            "version": "2026-07-04.1",
            "base_model": "smollm2",
            "base_revision": "b" * 64,
            "rank": 8,
            "root_digest": root_digest(files),
            "engine_name": "lk-support-tone-2026-07-04-1-0123456789abcdef0123",
            "validation_digest": "c" * 64,
            "approvals": ({"by": "rita@example.com", "digest": root_digest(files), "comment": "schön"},),
        }
        return ReleaseClaims(**{**claims, **changes})  # type: ignore[arg-type]  # tests change one claim at a time

    return make
