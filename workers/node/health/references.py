"""How each loaded version read its text where it was validated: kept on disk, so that it can be checked again later."""

import json
import logging
from pathlib import Path

from registry.reports import ProbeReference
from workers.node.durable import open_folder, read_json

_log = logging.getLogger(__name__)


class References:
    """One file per engine name below `folder`; a lost or torn one only makes a later check weaker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        open_folder(folder)

    def keep(self, engine_name: str, reference: ProbeReference | None) -> None:
        """Note it; None forgets an earlier one."""
        if reference is None:
            self.forget(engine_name)
        elif self.of(engine_name) != reference:
            try:
                temporary = self._folder / f".{engine_name}.tmp"
                temporary.write_text(json.dumps(reference.to_json()))
                temporary.replace(self._path(engine_name))
            except OSError:
                _log.exception("the reference of %s can't be kept: it is checked without", engine_name)

    def of(self, engine_name: str) -> ProbeReference | None:
        try:
            value = read_json(self._path(engine_name))
            return None if value is None else ProbeReference.from_json(value)
        except ValueError:
            _log.exception("the reference of %s is damaged: it is checked without", engine_name)
            return None

    def forget(self, engine_name: str) -> None:
        self._path(engine_name).unlink(missing_ok=True)

    def _path(self, engine_name: str) -> Path:
        return self._folder / f"{engine_name}.json"
