import json
from pathlib import Path

import pytest

from deploy.embedded.errors import EmbeddedError
from deploy.embedded.specs import FromFile, levels, resolve


def test_what_is_needed_comes_in_an_earlier_group() -> None:
    needs = {"web": ["migrate", "valkey"], "migrate": ["postgres"], "postgres": [], "valkey": []}
    assert levels(needs) == [["postgres", "valkey"], ["migrate"], ["web"]]


def test_needing_something_unknown_is_refused_by_name() -> None:
    with pytest.raises(EmbeddedError, match="mysql"):
        levels({"web": ["mysql"]})


def test_needing_each_other_is_refused_by_name() -> None:
    with pytest.raises(EmbeddedError, match="gateway, web"):
        levels({"web": ["gateway"], "gateway": ["web"]})


def test_values_of_a_file_are_read_when_the_environment_is_resolved(tmp_path: Path) -> None:
    file = tmp_path / "bootstrap.json"
    environment: dict[str, str | FromFile] = {"TOKEN": FromFile(file, "gateway_token"), "HOME": "/home"}
    file.write_text(json.dumps({"gateway_token": "lk_x"}))
    assert resolve(environment) == {"TOKEN": "lk_x", "HOME": "/home"}


@pytest.mark.parametrize("text", ["{}", "not json", None])
def test_a_value_that_no_step_wrote_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "bootstrap.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(EmbeddedError, match=r"bootstrap\.json has no 'gateway_token'"):
        FromFile(file, "gateway_token").read()
