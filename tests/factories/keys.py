"""Signing keys of tests: the configured ones, a pipeline's, and the bundles that a pipeline makes."""

from collections.abc import Iterable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec

from registry.models import PipelineKey, Tenant, Version
from registry.services.pipeline_signatures import register_pipeline_key
from registry.signing.bundle import sign_files
from registry.signing.local_key import LocalKeySigner, generate_key_file
from registry.signing.manifest import SignedFile
from tests.factories.registry import make_actor, next_name


def make_signers(folder: Path, *names: str) -> dict[str, LocalKeySigner]:
    """New keys in files of these names, by path as the setting names them."""
    return {str(folder / name): generate_key_file(folder / name) for name in names}


def make_pipeline_key(tenant: Tenant, signer: LocalKeySigner | None = None) -> tuple[PipelineKey, LocalKeySigner]:
    """A registered key, and the signer that has its private half."""
    made = signer or LocalKeySigner(ec.generate_private_key(ec.SECP256R1()))
    key = register_pipeline_key(
        actor=make_actor(), tenant=tenant, name=next_name("pipeline"), public_key=made.public_pem()
    )
    return key, made


def pipeline_bundle(signer: LocalKeySigner, version: Version, *, without: Iterable[str] = ()) -> str:
    """A bundle over the version's files, but for those at the paths ``without``."""
    files = version.files.select_related("artifact")
    return sign_files(
        signer,
        [SignedFile(file.path, file.artifact.size, file.artifact.sha256) for file in files if file.path not in without],
    )
