"""All cases, and how they are made."""

import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.corpus.archives import ARCHIVES
from bench.corpus.case import Case
from bench.corpus.configs import BASES, CONFIGS
from bench.corpus.files import FILES
from bench.corpus.keys import KEYS
from bench.corpus.sound import SOUND
from bench.corpus.values import VALUES
from bench.corpus.warned import WARNED
from bench.corpus.workshop import Workshop
from registry.base_models.modules import BaseModules

CASES: Final[tuple[Case, ...]] = tuple(
    case for kind in (SOUND, WARNED, FILES, KEYS, VALUES, CONFIGS, BASES, ARCHIVES) for case in kind.cases
)


def make_all(root: Path, base_folder: Path, base: BaseModules) -> Iterator[tuple[Case, Path]]:
    """Make every case in `root`/<case>/adapter, the same every time; each is gone when the next one is asked for."""
    for case in CASES:
        home = root / case.name
        shutil.rmtree(home, ignore_errors=True)
        folder = home / "adapter"
        folder.mkdir(parents=True)
        case.build(Workshop(folder, base_folder, base, seed=zlib.crc32(case.name.encode())))
        yield case, folder
        shutil.rmtree(home)
