"""The contract servers are what the engines' own public clients expect: `text-generation` and `lorax-client` of PyPI.

Their pins contradict ours, so that each has an environment of its own, made once.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.hub_environments import client_python, run_client
from tests.fakes.engine_lorax import FakeLoraxServer
from tests.fakes.engine_tgi import FakeTgiServer
from tests.integration.workers.node.engines.contenders import BASE, write_adapter

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
WORDS = [f"[{BASE}] ", "answers: ", "one ", "two "]


def ask(python: Path, script: str, *arguments: str, home: Path) -> dict[str, Any]:
    return run_client(python, script, *arguments, endpoint="http://127.0.0.1:9", token="none", home=home)


def check_readings(prefill: list[float | None]) -> None:
    assert prefill[0] is None
    assert len(prefill) == 3
    assert all(value is not None and value < 0 for value in prefill[1:])


def test_the_client_of_tgi_understands_the_contract_server(tmp_path: Path) -> None:
    python = client_python("text-generation", "text-generation==0.7.0")
    with (
        FakeTgiServer(base=BASE, set_file=tmp_path / "tgi.env") as fake,
        FakeTgiServer(base=BASE, set_file=tmp_path / "busy.env") as busy,
    ):
        busy.faults.overloaded = True
        said = ask(python, "engine_client_tgi.py", fake.url, busy.url, home=tmp_path)
    assert (said["text"], said["finish"], said["last"]) == ("".join(WORDS), "length", "".join(WORDS))
    assert said["tokens"] == said["streamed"] == WORDS
    check_readings(said["prefill"])
    assert said["chat"] == "".join(WORDS[:3])
    assert said["errors"] == {"busy": "Model is overloaded"}


def test_the_client_of_lorax_understands_the_contract_server(tmp_path: Path) -> None:
    python = client_python("lorax", "lorax-client==0.6.3")
    folder = write_adapter(tmp_path / "adapter")
    with FakeLoraxServer(base=BASE) as fake:
        said = ask(python, "engine_client_lorax.py", fake.url, str(folder), home=tmp_path)
    words = [f"[{folder}] ", *WORDS[1:]]
    assert said["base"] == "".join(WORDS)
    assert (said["text"], said["finish"], said["last"]) == ("".join(words), "length", "".join(words))
    assert (said["streamed"], said["prompt_tokens"]) == (words, 3)
    check_readings(said["prefill"])
    assert "No local weights found" in said["errors"]["gone"]
