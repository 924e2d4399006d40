"""The base model as a folder on this machine: what checks need of it, without reading its weights."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from registry.base_models import strict_json
from registry.base_models.description import BaseDescription, describe_folder

_NAME_KEYS: Final = ("_name_or_path", "name_or_path", "_model_name_or_path")
# Folders of the hub's cache: models--organisation--name/snapshots/commit.
_CACHE_MARK: Final = "models--"


def read_base_folder(folder: Path) -> tuple[BaseDescription, tuple[str, ...]]:
    """The description of the model in `folder`, and names that may be its own.

    Raises:
        DescriptionError: a file is missing or unsound; `field` is its name.
        OSError: a file can't be read.

    """
    return describe_folder(folder, with_weights=False), tuple(dict.fromkeys(_hints(folder)))


def _hints(folder: Path) -> Iterator[str]:
    here = folder.resolve()
    cached = [part for part in here.parts if part.startswith(_CACHE_MARK)]
    yield cached[-1].removeprefix(_CACHE_MARK).replace("--", "/") if cached else here.name
    if cached:
        # The commit, which adapters record as the base's revision.
        yield here.name
    # Read a second time; the description keeps only its digest.
    config = strict_json.parse((folder / "config.json").read_bytes())
    for key in _NAME_KEYS:
        value = config.get(key) if isinstance(config, dict) else None
        if isinstance(value, str) and value.strip():
            yield value
