"""A commit as clients send it: a header, then one operation a line."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from registry.base_models import strict_json
from registry.errors import InvalidInput
from registry.hub.blobs import Blob, decode_blob
from registry.hub.lines import Line, Lines
from registry.naming import MAX_FILES, check_digest

# Each file may be deleted and added in one commit; then there is the header.
MAX_LINES: Final = 2 * MAX_FILES + 1


@dataclass(frozen=True, slots=True)
class Header:
    """``parent`` is the commit that the client builds on, if it says so."""

    title: str
    description: str
    parent: str | None


@dataclass(frozen=True, slots=True)
class AddFile:
    """The blob is closed as soon as the next operation is asked for."""

    path: str
    blob: Blob


@dataclass(frozen=True, slots=True)
class CopyFile:
    """A file whose bytes are in the repository already, by their digest."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class DeleteFile:
    path: str


@dataclass(frozen=True, slots=True)
class DeleteFolder:
    path: str


Operation = Header | AddFile | CopyFile | DeleteFile | DeleteFolder


def read_operations(source: BinaryIO, *, length: int, limit: int) -> Iterator[Operation]:
    """The operations in the order they come, each as soon as its line is read.

    Args:
        source: the body, NDJSON.
        length: its announced length in bytes.
        limit: how many bytes all files may have together.

    Raises:
        InvalidInput: not a commit, or it broke off.
        PayloadTooLarge: more bytes than ``limit``.

    """
    for number, line in enumerate(Lines(source, length=length, limit=limit)):
        if number >= MAX_LINES:
            raise InvalidInput(f"A commit has at most {MAX_LINES} lines.")
        if not line.skeleton.strip():
            continue
        key, value = _parse(line)
        if (key == "header") != (number == 0):
            raise InvalidInput("The first line of a commit, and no other, is its header.")
        operation = _operation(key, value, line, limit)
        try:
            yield operation
        finally:
            if isinstance(operation, AddFile):
                operation.blob.file.close()


def _parse(line: Line) -> tuple[str, dict[str, Any]]:
    try:
        data = strict_json.parse(line.skeleton)
    except strict_json.StrictJsonError as error:
        raise InvalidInput(f"A line of the commit can't be read as JSON: {error}.") from None
    if not isinstance(data, dict) or not isinstance(data.get("value"), dict) or not isinstance(data.get("key"), str):
        raise InvalidInput('A line of a commit reads {"key": …, "value": {…}}.')
    if line.blob is not None and (data["key"] != "file" or data["value"].get("content", "") is not None):
        raise InvalidInput("Only the content of a file may be that long.")
    return data["key"], data["value"]


def _operation(key: str, value: dict[str, Any], line: Line, limit: int) -> Operation:
    match key:
        case "header":
            parent = value.get("parentCommit")
            return Header(
                title=_text(value, "summary"),
                description=_text(value, "description", default=""),
                parent=None if parent is None else _text(value, "parentCommit"),
            )
        case "file":
            return AddFile(path=_text(value, "path"), blob=_blob(value, line, limit))
        case "lfsFile":
            return CopyFile(path=_text(value, "path"), sha256=check_digest(_text(value, "oid"), field="oid"))
        case "deletedFile":
            return DeleteFile(path=_text(value, "path"))
        case "deletedFolder":
            return DeleteFolder(path=_text(value, "path").rstrip("/"))
    raise InvalidInput(f"{key[:80]!a} is no operation of a commit.")


def _blob(value: dict[str, Any], line: Line, limit: int) -> Blob:
    if value.get("encoding") != "base64":
        raise InvalidInput("encoding: the content of a file comes as base64", field="encoding")
    return line.blob or decode_blob(_text(value, "content"), limit=limit)


def _text(value: dict[str, Any], name: str, *, default: str | None = None) -> str:
    text = value.get(name, default)
    if not isinstance(text, str) or "\0" in text:
        raise InvalidInput(f"{name}: this is a text without NUL characters", field=name)
    return text
