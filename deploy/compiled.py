"""``python -m deploy.compiled``: a copy of this tree with its gateway compiled, as an image has it; prints the folder.

From a working tree the gateway runs as it's written. Who measures it, or tests what is delivered, does it in the copy:
compiled beside its sources, a module would go on as it was however they are changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FOLDER = ROOT / ".lorekeeper-compiled"
_LEFT_OUT = (".*", "build", "__pycache__", "*.egg-info")


def compiled_gateway() -> Path:
    """The folder of the copy, brought up to date; what is compiled is so anew where it has changed (about a minute)."""
    mark, wanted = _FOLDER / ".built", _digest()
    is_built = mark.exists() and mark.read_text() == wanted
    if is_built:
        _clear()
    else:
        shutil.rmtree(_FOLDER, ignore_errors=True)
    shutil.copytree(ROOT, _FOLDER, ignore=shutil.ignore_patterns(*_LEFT_OUT), dirs_exist_ok=True)
    if not is_built:
        _compile()
        mark.write_text(wanted)
    return _FOLDER


def _clear() -> None:
    """Leave what is compiled and what it was compiled of: of all else, nothing stays that the tree has no more."""
    for path in _FOLDER.iterdir():
        if path.name in ("gateway", ".built") or path.suffix == ".so":
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _compile() -> None:
    sys.stderr.write("compiling the gateway\n")
    made = subprocess.run(
        (sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"),
        cwd=_FOLDER,
        env={**os.environ, "LOREKEEPER_COMPILED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if made.returncode:
        raise RuntimeError(f"the gateway can't be compiled: {made.stdout}")
    shutil.rmtree(_FOLDER / "build")


def _digest() -> str:
    """Of all that the compiled modules depend on."""
    digest = hashlib.sha256(sys.version.encode())
    for path in (ROOT / "setup.py", ROOT / "requirements.txt", *sorted((ROOT / "gateway").rglob("*.py"))):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.stdout.write(f"{compiled_gateway()}\n")
