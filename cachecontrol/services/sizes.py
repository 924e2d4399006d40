"""How many bytes versions have: read once per process, since a version's files never change."""

from collections.abc import Iterable
from threading import Lock
from typing import Final
from uuid import UUID

from django.db.models import Sum

from registry.models import VersionFile

_MOST: Final = 100_000
_known: dict[UUID, int] = {}
_lock: Final = Lock()


def sizes_of(version_ids: Iterable[UUID]) -> dict[UUID, int]:
    """The bytes of all files of each version; 0 for one without files."""
    wanted = list(version_ids)
    found = {version_id: size for version_id in wanted if (size := _known.get(version_id)) is not None}
    unknown = [version_id for version_id in wanted if version_id not in found]
    return found | _read(unknown) if unknown else found


def _read(version_ids: list[UUID]) -> dict[UUID, int]:
    rows = VersionFile.objects.filter(version__in=version_ids).order_by().values_list("version_id")
    found = dict.fromkeys(version_ids, 0) | dict(rows.annotate(size=Sum("artifact__size")))
    with _lock:
        if len(_known) + len(found) > _MOST:
            _known.clear()
        # A version without files may still be getting them.
        _known.update({version_id: size for version_id, size in found.items() if size})
    return found
