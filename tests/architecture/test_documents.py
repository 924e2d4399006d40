"""What the documents promise is there."""

import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from client.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]


def tracked_folders() -> set[str]:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return {parent.as_posix() for name in files for parent in Path(name).parents if parent != Path()}


def test_the_architecture_names_every_folder() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`([a-z_./]+?)/?`", text))
    names = {part for name in named for part in Path(name).parts}
    folders = {
        folder for folder in tracked_folders() if not folder.startswith((".ci", "tests/")) and "/locale/" not in folder
    }
    assert {folder for folder in folders if Path(folder).name not in names} == set()


def test_the_architecture_names_no_file_that_is_gone() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    paths = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|sql))`", text)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists() and not list(ROOT.glob(f"*/{path}"))] == []


def test_the_compose_file_has_every_process_and_keeps_secrets_apart() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    processes = {"postgres", "valkey", "s3", "migrate", "web", "gateway", "validate", "control", "beat", "agent"}
    assert processes <= set(services)
    for outside in ("gateway", "agent"):
        settings = services[outside]["environment"]
        assert "secrets" not in services[outside]
        assert not {"LOREKEEPER_SECRET_KEY", "LOREKEEPER_DB_PASSWORD", "LOREKEEPER_S3_SECRET_KEY"} & set(settings)


def goes_into_an_image(path: str) -> bool:
    """By Docker's rules: the last line counts that matches the path or a folder of it."""
    goes = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        if not line or line.startswith("#"):
            continue
        made = re.escape(pattern).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
        made = made.replace(r"\[", "[").replace(r"\]", "]")
        if any(re.fullmatch(made, part.as_posix()) for part in (Path(path), *Path(path).parents[:-1])):
            goes = line.startswith("!")
    return goes


def test_an_image_is_built_of_all_that_it_runs() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    packages = ("cachecontrol", "client", "config", "deploy", "gateway", "registry", "releases", "workers")
    needed = ("static/", "templates/", *(f"{package}/" for package in packages))
    needed = (*needed, "manage.py", "pyproject.toml", "requirements.txt", "setup.py", "README.md", "LICENSE")
    assert [name for name in files if name.startswith(needed) and not goes_into_an_image(name)] == []


@pytest.mark.parametrize(
    "path",
    [
        *(".git/config", ".venv/bin/python", ".venv-vllm/x", ".lorekeeper/secrets.json", ".lorekeeper/store/a", ".env"),
        *("deploy/signing-key.pem", "deploy/trusted-keys.pem", "deploy/.env", "gateway/production.env", "config/a.key"),
        *("base-model/model.safetensors", "base-models/a/b/config.json", "tests/conftest.py", "pulled/adapter.bin"),
        *("gateway/limits.cpython-311-x86_64-linux-gnu.so", "gateway/__pycache__/app.cpython-311.pyc", "a.log"),
    ],
)
def test_nothing_else_that_lies_there_goes_into_an_image(path: str) -> None:
    assert not goes_into_an_image(path)


def test_ci_runs_the_one_command_and_nothing_else() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    commands = [line for line in lines if line and not line.startswith("#")]
    assert commands[-1] == "exec make test"
    assert len(commands) == 3


def command_lines() -> list[list[str]]:
    """Every use of the command line in the README, as words."""
    lines = re.findall(r"^(?:    )?(lorekeeper .*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    parts = [part for line in lines for part in line.partition("#")[0].split("&&")]
    return [shlex.split(part.partition(">")[0])[1:] for part in parts]


@pytest.mark.parametrize("words", command_lines(), ids=" ".join)
def test_every_command_in_the_readme_exists_with_its_options(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out" / "checkpoint-900").mkdir(parents=True)
    for name in ("base", "checkpoints", "pulled"):
        (tmp_path / name).mkdir()
    for name in ("trusted-keys.pem", "acme.jsonl", "llama.yaml"):
        (tmp_path / name).touch()
    command: click.Command = cli
    rest = list(words)
    while isinstance(command, click.Group):
        command = command.commands[rest.pop(0)]
    context = command.make_context(words[0], rest, resilient_parsing=False)
    assert context.command is command
