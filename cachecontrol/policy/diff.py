"""What changes from one policy to another: by meaning, so that order, comments and defaults written out don't show."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cachecontrol.policy.document import PolicyDocument

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Change:
    """One value that differs; ``before`` or ``after`` is None where there is nothing (or nothing set)."""

    path: str
    before: Any
    after: Any


def diff(before: PolicyDocument, after: PolicyDocument) -> tuple[Change, ...]:
    """The changes in the order of the document. Of lists of entries (pins, schedules), those that come and go."""
    return tuple(_compare("", before.model_dump(mode="json"), after.model_dump(mode="json")))


def _compare(path: str, before: Any, after: Any) -> Iterator[Change]:  # noqa: ANN401  any JSON value
    if isinstance(before, Mapping) or isinstance(after, Mapping):
        yield from _compare_mappings(path, before, after)
    elif _is_of_entries(before) or _is_of_entries(after):
        yield from _compare_entries(path, before, after)
    elif before != after:
        yield Change(path, _shown(before), _shown(after))


def _compare_mappings(path: str, before: Any, after: Any) -> Iterator[Change]:  # noqa: ANN401  as above
    old, new = (each if isinstance(each, Mapping) else {} for each in (before, after))
    for key in dict.fromkeys([*old, *new]):
        inner = f"{path}.{key}" if path else key
        yield from _compare(inner, old.get(key, _MISSING), new.get(key, _MISSING))


def _compare_entries(path: str, before: list[Any], after: list[Any]) -> Iterator[Change]:
    """Entries have no order that means anything."""
    old, new = ({json.dumps(entry, sort_keys=True): entry for entry in entries} for entries in (before, after))
    yield from (Change(path, entry, None) for key, entry in old.items() if key not in new)
    yield from (Change(path, None, entry) for key, entry in new.items() if key not in old)


def _is_of_entries(value: Any) -> bool:  # noqa: ANN401  as above
    return isinstance(value, list) and any(isinstance(entry, Mapping) for entry in value)


def _shown(value: Any) -> Any:  # noqa: ANN401  as above
    return None if value is _MISSING else value
