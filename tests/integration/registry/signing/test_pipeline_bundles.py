"""What a pipeline signs with the public tool is what a tenant's registered key accepts."""

import subprocess
import sys
from pathlib import Path

import pytest

from registry.signing.errors import DigestMismatch
from registry.signing.keys import TrustedKeys
from registry.signing.local_key import LocalKeySigner, generate_key_file
from registry.signing.pipeline_bundle import key_id_in, verify_pipeline_bundle
from tests.factories.signed_folders import read_folder


@pytest.fixture
def pipeline(tmp_path: Path) -> LocalKeySigner:
    return generate_key_file(tmp_path / "pipeline.pem")


def test_a_bundle_of_the_public_tool_is_accepted_for_its_files_alone(tmp_path: Path, pipeline: LocalKeySigner) -> None:
    folder = tmp_path / "adapter"
    (folder / "nested").mkdir(parents=True)
    (folder / "adapter_config.json").write_text('{"r": 8}')
    (folder / "nested/Zürich notes.md").write_text("not ASCII")
    (folder / "adapter_model.safetensors").write_bytes(bytes(range(256)) * 64)
    bundle = tmp_path / "pipeline.sig"
    arguments = ("sign", "key", folder, "--signature", bundle, "--private_key", tmp_path / "pipeline.pem")
    subprocess.run([sys.executable, "-m", "model_signing", *map(str, arguments)], check=True, timeout=60)

    text = bundle.read_text()
    key = TrustedKeys.from_pem(pipeline.public_pem()).find(key_id_in(text))
    files = read_folder(folder)
    verify_pipeline_bundle(text, key, files)
    (folder / "adapter_config.json").write_text('{"r": 9}')
    with pytest.raises(DigestMismatch):
        verify_pipeline_bundle(text, key, read_folder(folder))
