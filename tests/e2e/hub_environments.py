"""Environments of their own for clients of the Hub, made once and kept beside what else takes long to make."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from deploy.demo.materials import DEFAULT_CACHE

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / DEFAULT_CACHE


def client_python(name: str, *requirements: str, above: Path | None = None) -> Path:
    """The interpreter of an environment that has ``requirements``; ``above`` lends it what it lacks."""
    folder = CACHE / f"hub-client-{name}"
    stamp, wanted = folder / "made-of.json", json.dumps([sys.version, requirements, str(above or "")])
    python = folder / "bin" / "python"
    if not (stamp.exists() and stamp.read_text() == wanted):
        venv.create(folder, with_pip=True, clear=True)
        if above is not None:
            site = next((folder / "lib").glob("python3*/site-packages"))
            (site / "above.pth").write_text(f"{above}\n")
        pip = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        if requirements:
            subprocess.run((*pip, *(("--no-deps",) if above else ()), *requirements), check=True)
        stamp.write_text(wanted)
    return python


def run_client(python: Path, script: str, *arguments: str, endpoint: str, token: str, home: Path) -> dict[str, Any]:
    """Run a script of this folder with nothing of ours around it; returns the JSON object that it prints last."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "LD_LIBRARY_PATH"}}
    environment = {
        **kept,
        "HF_ENDPOINT": endpoint,
        "HF_TOKEN": token,
        "HF_HOME": str(home),
        "HOME": str(home),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [str(python), str(Path(__file__).parent / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=home, timeout=240, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
