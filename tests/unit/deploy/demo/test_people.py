import stat
from pathlib import Path

import pytest

from deploy.demo.people import ANA, PEOPLE, TokenFile, prefix_of

TOKEN = "lk_0123456789ab_secret-with_underscore"


def test_a_kept_token_is_used_again_while_the_server_knows_it(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    TokenFile(path).get_or_make("ana", known=(), make=lambda: TOKEN)
    again = TokenFile(path).get_or_make("ana", known={"0123456789ab"}, make=lambda: pytest.fail("made twice"))
    assert again == TOKEN


def test_a_token_the_server_has_forgotten_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    TokenFile(path).get_or_make("ana", known=(), make=lambda: TOKEN)
    assert TokenFile(path).get_or_make("ana", known=(), make=lambda: "lk_ffffffffffff_new") == "lk_ffffffffffff_new"


def test_only_the_owner_may_read_the_tokens(tmp_path: Path) -> None:
    path = tmp_path / "data" / "tokens.json"
    TokenFile(path).get_or_make("ana", known=(), make=lambda: TOKEN)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["tokens.json"]


@pytest.mark.parametrize(("token", "prefix"), [(TOKEN, "0123456789ab"), ("", ""), ("nonsense", ""), ("lk_x", "")])
def test_the_prefix_is_read_from_a_token_and_from_nothing_else(token: str, prefix: str) -> None:
    assert prefix_of(token) == prefix


def test_nobody_but_ana_uploads_and_no_two_people_share_an_address() -> None:
    assert [person for person in PEOPLE if "uploader" in person.roles] == [ANA]
    assert len({person.email for person in PEOPLE}) == len(PEOPLE)
