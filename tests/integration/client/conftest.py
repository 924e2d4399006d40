import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from client import LorekeeperClient, RetryPolicy
from client.cli.main import cli
from client.cli.session import Session
from tests.integration.client.fake_registry import API_KEY, TOKEN, FakeRegistry, running

Run = Callable[..., Result]
ROOT = Path(__file__).parents[3]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[FakeRegistry]:
    with running(FakeRegistry(tmp_path)) as app:
        yield app


@pytest.fixture
def client(registry: FakeRegistry) -> Iterator[LorekeeperClient]:
    with LorekeeperClient(registry.url, TOKEN, retry=RetryPolicy(first_delay_s=0.01)) as connection:
        yield connection


@pytest.fixture
def environ(registry: FakeRegistry, tmp_path: Path) -> dict[str, str]:
    return {
        "LOREKEEPER_URL": registry.url,
        "LOREKEEPER_TOKEN": TOKEN,
        "LOREKEEPER_GATEWAY_URL": registry.url,
        "LOREKEEPER_API_KEY": API_KEY,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "HOME": str(tmp_path),
    }


@pytest.fixture
def run(environ: dict[str, str]) -> Run:
    def invoke(*args: object, stdin: str | None = None) -> Result:
        session = Session(environ=environ, retry=RetryPolicy(first_delay_s=0.01))
        return CliRunner().invoke(cli, [str(arg) for arg in args], input=stdin, obj=session)

    return invoke


@pytest.fixture
def run_json(run: Run) -> Callable[..., Any]:
    def invoke(*args: object, exit_code: int = 0) -> Any:
        result = run(*args, "--json")
        assert result.exit_code == exit_code, result.output
        return json.loads(result.stdout)

    return invoke


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "adapter"
    root.mkdir()
    (root / "adapter_config.json").write_text('{"r": 8}')
    (root / "adapter_model.safetensors").write_bytes(os.urandom(700_000))
    (root / "README.md").write_text("# Support tone\n")
    return root


@pytest.fixture
def command(environ: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """The command line as a process of its own: its start and its environment."""
    start = [sys.executable, "-c", "from client.cli.main import main; main()"]
    return start, {**environ, "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
