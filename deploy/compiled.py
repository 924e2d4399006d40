"""``python -m deploy.compiled``: this tree built as an image has it, its gateway compiled; prints the folder.

From a working tree the gateway runs as it's written. Who measures it, or tests what is delivered, builds it by this and
puts the folder first on Python's path (with PYTHONSAFEPATH, or the tree that one stands in comes before).
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


def compiled_gateway() -> Path:
    """The folder of the build; made where it's missing, and anew where a source has changed (about a minute)."""
    mark, wanted = _FOLDER / ".built", _digest()
    if mark.exists() and mark.read_text() == wanted:
        return _FOLDER / "lib"
    sys.stderr.write("compiling the gateway\n")
    shutil.rmtree(_FOLDER, ignore_errors=True)
    # Where the build puts what it makes on its way, by the name that everybody ignores.
    command = (sys.executable, "setup.py", "--quiet", "build", "--build-base", str(_FOLDER), "--build-lib")
    made = subprocess.run(
        (*command, str(_FOLDER / "lib")),
        cwd=ROOT,
        env={**os.environ, "LOREKEEPER_COMPILED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if made.returncode:
        raise RuntimeError(f"the gateway can't be compiled: {made.stdout}")
    mark.write_text(wanted)
    return _FOLDER / "lib"


def _digest() -> str:
    """Of all that the build depends on."""
    digest = hashlib.sha256(sys.version.encode())
    for path in (ROOT / "setup.py", ROOT / "requirements.txt", *sorted((ROOT / "gateway").rglob("*.py"))):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.stdout.write(f"{compiled_gateway()}\n")
