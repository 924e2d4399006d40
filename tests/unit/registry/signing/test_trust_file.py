import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from registry.signing.errors import KeyFileError, KeyRevoked, UnknownKey
from registry.signing.keys import render_trusted_key
from registry.signing.local_key import LocalKeySigner
from registry.signing.trust_file import TrustFile, write_trust_file


def test_a_key_that_is_added_to_the_file_is_trusted_without_a_restart(
    tmp_path: Path, signer: LocalKeySigner, other_signer: LocalKeySigner
) -> None:
    path = tmp_path / "trusted.pem"
    write_trust_file(path, signer.public_pem())
    keys = TrustFile(path)
    with pytest.raises(UnknownKey):
        keys.find(other_signer.key_id)
    write_trust_file(path, signer.public_pem() + other_signer.public_pem())
    assert keys.find(other_signer.key_id).key_id == other_signer.key_id


def test_a_key_that_is_revoked_in_the_file_is_trusted_no_more(tmp_path: Path, signer: LocalKeySigner) -> None:
    path = tmp_path / "trusted.pem"
    write_trust_file(path, signer.public_pem())
    keys = TrustFile(path)
    write_trust_file(path, render_trusted_key(signer.public_pem(), revoked=datetime(2026, 7, 4, tzinfo=UTC)))
    with pytest.raises(KeyRevoked):
        keys.find(signer.key_id)


def test_a_change_that_cannot_be_read_leaves_the_keys_as_they_were(tmp_path: Path, signer: LocalKeySigner) -> None:
    path = tmp_path / "trusted.pem"
    write_trust_file(path, signer.public_pem())
    keys = TrustFile(path)
    path.write_text(signer.public_pem()[:60])
    assert keys.find(signer.key_id)
    path.unlink()
    assert keys.find(signer.key_id)


def test_a_file_without_keys_is_refused_at_the_start_and_never_written(tmp_path: Path) -> None:
    path = tmp_path / "trusted.pem"
    with pytest.raises(KeyFileError, match="can't be read"):
        TrustFile(path)
    with pytest.raises(KeyFileError):
        write_trust_file(path, "")
    with pytest.raises(KeyFileError):
        write_trust_file(path, "no key")
    assert list(tmp_path.iterdir()) == []


def test_everybody_may_read_the_file_and_nothing_is_left_beside_it(tmp_path: Path, signer: LocalKeySigner) -> None:
    path = tmp_path / "trusted.pem"
    umask = os.umask(0o077)
    try:
        write_trust_file(path, signer.public_pem())
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]
