import stat
from pathlib import Path

from deploy.embedded.system.secret_files import SecretFolder, write_secret


def test_a_secret_is_made_once_and_kept(tmp_path: Path) -> None:
    made = SecretFolder(tmp_path / "secrets").text("valkey")
    assert SecretFolder(tmp_path / "secrets").text("valkey") == made
    assert len(made) >= 43


def test_secrets_differ_from_each_other(tmp_path: Path) -> None:
    folder = SecretFolder(tmp_path / "secrets")
    assert folder.text("one") != folder.text("two")


def test_only_the_owner_can_read_secrets(tmp_path: Path) -> None:
    folder = SecretFolder(tmp_path / "secrets")
    folder.text("valkey")
    assert stat.S_IMODE(folder.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.path("valkey").stat().st_mode) == 0o600


def test_a_rewritten_secret_stays_private_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "valkey.conf"
    file.write_text("readable by all")
    file.chmod(0o644)
    write_secret(file, "requirepass x")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]
