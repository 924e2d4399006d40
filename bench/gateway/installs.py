"""The routers that a user would pick instead, each in a virtual environment of its own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from bench.gateway.processes import ROOT

if TYPE_CHECKING:
    from pathlib import Path

VLLM_ROUTER = "vllm-router==0.1.17"
LITELLM = "litellm[proxy]==1.108.7"
_FOLDER = ROOT / ".lorekeeper-bench"


def environment(requirement: str) -> Path:
    """The folder of programs of an environment that has the package; made at the first call, kept for later ones.

    The vLLM production-stack's router isn't published to an index, so it can't stand here.
    """
    folder = _FOLDER / requirement.partition("=")[0].partition("[")[0]
    mark = folder / ".installed"
    if not mark.exists() or mark.read_text() != requirement:
        sys.stdout.write(f"installing {requirement} for the comparison\n")
        sys.stdout.flush()
        subprocess.run((sys.executable, "-m", "venv", "--clear", folder), check=True)
        pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        subprocess.run((*pip, requirement), check=True, stderr=subprocess.DEVNULL)
        mark.write_text(requirement)
    return folder / "bin"
