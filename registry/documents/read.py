"""From a text that people write (a cache policy, a release template) to its document.

The text is YAML of the core schema (1.2): ``true`` and ``false`` alone are booleans, and 12:30 is no number of minutes.
Anchors, aliases, tags and keys that stand twice are refused: what people read is what is meant. JSON is YAML, too.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from registry.documents.values import Section

S = TypeVar("S", bound=Section)

MAX_CHARACTERS: Final = 128 * 1024
_MAX_DEPTH: Final = 16
_TOLD: Final = 20
_CORE: Final = (
    ("null", re.compile(r"~|null|"), "~n"),
    ("bool", re.compile(r"true|false"), "tf"),
    ("int", re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})"), "-+0123456789"),
    ("float", re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?"), "-+0123456789"),
)


class DocumentError(ValueError):
    """The text isn't what it should be.

    Attributes:
        field: the path of what is wrong, dotted, or "" for the text as a whole.
        faults: each fault by itself, as its path and what is wrong; the first twenty.

    """

    def __init__(self, message: str, *, field: str = "", faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.field = field
        self.faults = tuple(faults) or ((field, message),)


def read_document(text: str, shape: type[S], *, noun: str) -> S:
    """Read a text as a document of that shape; ``noun`` is what such a document is called.

    Raises:
        DocumentError: says what is wrong and where, up to twenty faults.

    """
    data = _read(text, noun)
    if not isinstance(data, dict):
        first = next((name for name, each in shape.model_fields.items() if each.is_required()), None)
        raise DocumentError(f"a {noun} is a mapping" + (f" that begins with {first}" if first else ""))
    try:
        return shape.model_validate_json(json.dumps(data))
    except ValidationError as error:
        raise _told(error, noun) from error


def _read(text: str, noun: str) -> Any:  # noqa: ANN401  any YAML value
    if len(text) > MAX_CHARACTERS:
        raise DocumentError(f"a {noun} has at most {MAX_CHARACTERS} characters, not {len(text)}")
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506  a safe loader with less in it
    except yaml.YAMLError as error:
        raise DocumentError(f"this is not YAML that can be read: {_reason(error)}") from error


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0

    def fetch_more_tokens(self) -> None:
        try:
            super().fetch_more_tokens()
        except (ValueError, OverflowError) as error:
            # An escape such as "\U00110000" names no character, and the library lets Python's own error through.
            raise yaml.MarkedYAMLError(
                problem="an escape or a number is out of range", problem_mark=self.get_mark()
            ) from error

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:  # noqa: ANN401  as above
        node: yaml.ScalarNode = super().compose_scalar_node(anchor)
        try:
            # JSON writes a character above U+FFFF as two escapes. One without the other is half a character.
            node.value = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            raise yaml.MarkedYAMLError(
                problem="an escape names half a character", problem_mark=node.start_mark
            ) from error
        return node

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401  as above
        event = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs leave it out
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise yaml.MarkedYAMLError(problem="anchors and aliases are refused", problem_mark=event.start_mark)
        if getattr(event, "tag", None):
            raise yaml.MarkedYAMLError(problem="tags are refused", problem_mark=event.start_mark)
        if self._depth >= _MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem="it is nested too deeply", problem_mark=event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002  as above
        seen: set[str] = set()
        for key, _value in node.value:
            if key.tag != "tag:yaml.org,2002:str":
                raise yaml.MarkedYAMLError(problem="a key is a text", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value} stands here twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


for _kind, _form, _first in _CORE:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(rf"(?:{_form.pattern})\Z"), [*_first, ""])


def _reason(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return str(problem) if mark is None else f"{problem} (line {mark.line + 1}, column {mark.column + 1})"


def _told(error: ValidationError, noun: str) -> DocumentError:
    found = error.errors(include_url=False, include_input=False)
    faults = [(_path(each["loc"]), _message(each)) for each in found[:_TOLD]]
    lines = [f"{path or noun}: {message}" for path, message in faults]
    if len(found) > _TOLD:
        lines.append(f"and {len(found) - _TOLD} more")
    return DocumentError("; ".join(lines), field=faults[0][0], faults=faults)


def _message(error: ErrorDetails) -> str:
    if error["type"] == "extra_forbidden":
        return "there is no such key"
    return error["msg"].removeprefix("Value error, ")


def _path(place: tuple[int | str, ...]) -> str:
    path = ""
    for part in place:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path
