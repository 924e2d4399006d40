"""What is wrong with the text of a policy, with the lines to look at. Pure."""

import re
from dataclasses import dataclass
from typing import Final

import yaml

from cachecontrol.policy.parse import parse_policy
from registry.documents.read import DocumentError

_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault; ``line`` counts from 1 and is None where the message says the place or there is none."""

    path: str
    message: str
    line: int | None


def find_faults(text: str) -> tuple[Fault, ...]:
    """Every fault of the text by itself, twenty at most; none: it is a policy."""
    try:
        parse_policy(text)
    except DocumentError as error:
        return tuple(Fault(path, message, line_of(text, path)) for path, message in error.faults)
    return ()


def line_of(text: str, path: str) -> int | None:
    """The line that begins what the path leads to, or as much of it as there is."""
    if not path:
        return None
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    line = None
    for key, index in _STEP.findall(path):
        found = _item(node, int(index)) if index else _value(node, key)
        if found is None:
            break
        line, node = found
    return line


def _value(node: yaml.Node | None, key: str) -> tuple[int, yaml.Node] | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next(((name.start_mark.line + 1, value) for name, value in node.value if name.value == key), None)


def _item(node: yaml.Node | None, index: int) -> tuple[int, yaml.Node] | None:
    if not isinstance(node, yaml.SequenceNode) or index >= len(node.value):
        return None
    return node.value[index].start_mark.line + 1, node.value[index]
