import stat
from pathlib import Path

import pytest

from client.config import Credentials, clean_url, config_path, load_credentials, save_credentials
from client.errors import ConfigurationError


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}


def test_what_was_saved_is_loaded_and_only_its_owner_may_read_it(environ: dict[str, str]) -> None:
    path = save_credentials(Credentials("https://registry.test", "lk_1"), environ)
    assert load_credentials(environ) == Credentials("https://registry.test", "lk_1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["config.json"]


def test_a_second_login_narrows_the_rights_of_a_file_that_was_open_to_all(environ: dict[str, str]) -> None:
    path = save_credentials(Credentials("https://registry.test", "lk_1"), environ)
    path.chmod(0o644)
    save_credentials(Credentials("https://registry.test", "lk_2"), environ)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_environment_comes_first(environ: dict[str, str]) -> None:
    save_credentials(Credentials("https://registry.test", "lk_1"), environ)
    environ |= {"LOREKEEPER_URL": "http://other.test/", "LOREKEEPER_TOKEN": "lk_2"}
    assert load_credentials(environ) == Credentials("http://other.test", "lk_2")


def test_a_stored_token_is_not_sent_to_another_server(environ: dict[str, str]) -> None:
    save_credentials(Credentials("https://registry.test", "lk_1"), environ)
    with pytest.raises(ConfigurationError, match=r"belongs to https://registry\.test"):
        load_credentials({**environ, "LOREKEEPER_URL": "http://evil.test"})


def test_without_anything_the_error_says_what_to_do(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="lorekeeper login"):
        load_credentials(environ)
    with pytest.raises(ConfigurationError, match="LOREKEEPER_TOKEN"):
        load_credentials({**environ, "LOREKEEPER_URL": "http://registry.test"})


@pytest.mark.parametrize("text", ["{", "[]", '{"url": 1}', '{"url": "http://x"}'])
def test_a_broken_file_is_named(environ: dict[str, str], text: str) -> None:
    path = config_path(environ)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"config\.json can't be read"):
        load_credentials(environ)


@pytest.mark.parametrize(
    "text", ["", "registry.test", "ftp://x", "http://", "http://u:p@x", "http://x?a=1", "http://x:y"]
)
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        clean_url(text)


def test_a_token_is_not_shown_when_credentials_are_printed() -> None:
    assert "lk_1" not in repr(Credentials("https://registry.test", "lk_1"))


def test_without_xdg_the_file_lies_below_the_home_folder() -> None:
    assert config_path({"HOME": "/people/ada"}) == Path("/people/ada/.config/lorekeeper/config.json")


def test_a_home_that_cannot_be_read_does_not_matter_when_the_environment_says_all() -> None:
    given = {"HOME": "/dev/null", "LOREKEEPER_URL": "http://registry.test", "LOREKEEPER_TOKEN": "lk_1"}
    assert load_credentials(given) == Credentials("http://registry.test", "lk_1")


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(_self: Path) -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "expanduser", homeless)
    with pytest.raises(ConfigurationError, match="XDG_CONFIG_HOME"):
        load_credentials({})


@pytest.mark.parametrize("token", ["lk_é", "lk_\n1", "lk_1 2"])
def test_a_token_with_characters_that_tokens_do_not_have_is_refused(token: str) -> None:
    with pytest.raises(ConfigurationError, match="LOREKEEPER_TOKEN") as caught:
        load_credentials({"LOREKEEPER_URL": "http://registry.test", "LOREKEEPER_TOKEN": token})
    assert token not in str(caught.value)
