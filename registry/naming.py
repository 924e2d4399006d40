"""Names and paths: what may be called what, and what is derived from a name.

Pure: no Django, no I/O. Every refusal names the field it is about::

    NamingError            code, field, and a sentence for people
    ├── BadName            a tenant, adapter, alias, node, base model or version name
    ├── BadDigest          not 64 lower-case hexadecimal digits
    ├── BadPath            a path inside an upload that could escape, hide or confuse
    ├── PathClash          two paths of one upload that some file systems can't hold together
    └── FileKindRefused    a file that an adapter doesn't need, or that can run code when it is read
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable
from datetime import date
from pathlib import PurePosixPath

from registry.errors import InvalidInput

DEFAULT_ALIAS = "default"
MAX_FILES = 256
MAX_PATH_BYTES = 255
MAX_SEGMENTS = 8
BUNDLE_FILE = "model.sig"
ATTESTATION_FILE = "release.intoto.json"

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_BASE_MODEL_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?", re.ASCII)
_VERSION_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
# The platform's own audit chain, and what addresses begin with: ours and those of the Hugging Face Hub.
_RESERVED_TENANTS = frozenset(
    {"platform", "admin", "api", "buckets", "datasets", "kernels", "models", "spaces", "static", "store"}
)
_RESERVED_PATHS = frozenset({BUNDLE_FILE, ATTESTATION_FILE})
_WINDOWS_DEVICE = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3])(?:\..*)?", re.DOTALL
)
_WINDOWS_CHARACTERS = frozenset('<>:"|?*')
_GIT_SEGMENT = re.compile(r"\.git.*|git~[0-9]+", re.DOTALL)
_DATA_SUFFIXES = frozenset({".safetensors", ".json", ".jinja"})
_DOC_SUFFIXES = frozenset({".md", ".txt"})
_SHOWN_LENGTH = 80
_MAX_NAME_LENGTH = 63
_PLAIN_FILES = frozenset({"LICENSE", "NOTICE", "tokenizer.model", "merges.txt", "vocab.txt"})
_PICKLE_SUFFIXES = frozenset({".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth", ".npy", ".npz"})
_CODE_SUFFIXES = frozenset({".py", ".pyc", ".so", ".dll", ".dylib", ".sh", ".exe"})


class NamingError(InvalidInput):
    """A name or path is refused; `field` says which one, `code` says why in one stable word."""


class BadName(NamingError):
    code = "bad_name"


class BadDigest(NamingError):
    code = "bad_digest"


class BadPath(NamingError):
    code = "bad_path"


class PathClash(NamingError):
    code = "path_clash"


class FileKindRefused(NamingError):
    code = "file_kind_refused"


def check_name(value: str, *, field: str = "name") -> str:
    """Return `value` if it may name a tenant, adapter, alias or node; else raise `BadName`."""
    if not _NAME.fullmatch(value):
        message = (
            f"{field}: {_shown(value)} is not a name, as it {_name_fault(value)}: 1 to 63 of a-z, 0-9 and '-', "
            "beginning and ending with a letter or digit"
        )
        raise BadName(message, field=field)
    return value


def default_alias_name(adapter: str) -> str:
    """The alias that every adapter with an approved version has: other names have no dot, so it is always free."""
    return f"{adapter}.{DEFAULT_ALIAS}"


def check_alias_name(value: str, *, field: str = "alias") -> str:
    """Return `value` if it may name an alias: as `check_name`, or an adapter's default; else raise `BadName`."""
    adapter, dot, last = value.partition(".")
    if dot and last == DEFAULT_ALIAS:
        check_name(adapter, field=field)
        return value
    return check_name(value, field=field)


def check_tenant_name(value: str, *, field: str = "tenant") -> str:
    """Like `check_name`; refuses also the names that the platform keeps for itself."""
    check_name(value, field=field)
    if value in _RESERVED_TENANTS:
        raise BadName(f"{field}: '{value}' is reserved", field=field)
    return value


def check_base_model_name(value: str, *, field: str = "base_model") -> str:
    """Return `value` if it may name a base model, as publishers name theirs (`llama-3.1-8b`); else raise `BadName`."""
    if not _BASE_MODEL_NAME.fullmatch(value) or ".." in value:
        message = (
            f"{field}: {_shown(value)} is not the name of a base model: 1 to 63 of a-z, 0-9, '-' and single '.', "
            "beginning and ending with a letter or digit"
        )
        raise BadName(message, field=field)
    return value


def check_version_name(value: str, *, field: str = "version") -> str:
    """Return `value` if it may name a version; else raise `BadName`."""
    if not _VERSION_NAME.fullmatch(value):
        message = (
            f"{field}: {_shown(value)} is not a version name: 1 to 64 of letters, digits, '.', '_' and '-', "
            "beginning and ending with a letter or digit"
        )
        raise BadName(message, field=field)
    return value


def check_digest(value: str, *, field: str = "sha256") -> str:
    """Return `value` if it is a SHA-256 in lower-case hex; else raise `BadDigest`."""
    if not _DIGEST.fullmatch(value):
        raise BadDigest(f"{field}: {_shown(value)} is not a SHA-256 digest (64 lower-case hex digits)", field=field)
    return value


def default_version_name(day: date, counter: int) -> str:
    """The name of the `counter`-th version (from 1) that was begun on `day`: `2026-07-04.3`."""
    if counter < 1:
        raise BadName(f"version: the counter begins at 1, not {counter}", field="version")
    return f"{day:%Y-%m-%d}.{counter}"


def engine_name(*, tenant: str, adapter: str, version: str, base_digest: str, root_digest: str) -> str:
    """The name that engines know: unique for ever, only `[a-z0-9-]`, never made from an alias."""
    identity = json.dumps([tenant, adapter, version, base_digest, root_digest], separators=(",", ":"))
    digest = hashlib.sha256(identity.encode()).hexdigest()[:20]
    return f"lk-{_slug(adapter, 24)}-{_slug(version, 16)}-{digest}"


def object_key(*, tenant: str, sha256: str) -> str:
    """Where a tenant's artifact lies in the object store: the key ends with the digest of the bytes."""
    check_name(tenant, field="tenant")
    check_digest(sha256)
    return f"artifacts/{tenant}/{sha256[:2]}/{sha256}"


def check_path(path: str, *, field: str = "path") -> str:
    """Return `path` if it is safe inside an upload on every file system; else raise `BadPath` with the reason."""
    reason = _whole_path_fault(path) or next(filter(None, map(_segment_fault, path.split("/"))), None)
    if reason:
        raise BadPath(f"{field}: {_shown(path)} {reason}", field=field)
    return path


def check_file_kind(path: str, *, field: str = "path") -> str:
    """Return `path` if an adapter may contain such a file; else raise `FileKindRefused` with the reason."""
    pure = PurePosixPath(path)
    if pure.name in _PLAIN_FILES or pure.suffix in _DATA_SUFFIXES or pure.suffix.lower() in _DOC_SUFFIXES:
        return path
    raise FileKindRefused(f"{field}: {_shown(path)} {_kind_fault(pure.suffix.lower())}", field=field)


def check_manifest_paths(paths: Iterable[str], *, field: str = "files") -> tuple[str, ...]:
    """Check every path of one upload, and all of them together; return them sorted as they are signed.

    Errors name the place: `files[3].path` for one path, `files` for their number.
    """
    listed = list(paths)
    if not 1 <= len(listed) <= MAX_FILES:
        raise BadPath(f"{field}: an upload has 1 to {MAX_FILES} files, not {len(listed)}", field=field)
    for index, path in enumerate(listed):
        check_path(path, field=f"{field}[{index}].path")
        check_file_kind(path, field=f"{field}[{index}].path")
    _check_clashes(listed, field=field)
    return tuple(sorted(listed, key=path_order))


def path_order(path: str) -> tuple[str, ...]:
    """Sort key of signed paths: by segments, so that `a/x` comes before `a-b/x`, as model signing sorts them."""
    return tuple(path.split("/"))


def _slug(text: str, length: int) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:length].strip("-")


def _name_fault(value: str) -> str:
    """What keeps `value` from being a name, the first thing that a person would see."""
    faults = (
        (not value, "is empty"),
        (any(unicodedata.category(char)[0] == "C" for char in value), "has control or invisible characters"),
        ("/" in value or "\\" in value, "has a slash, as a path has"),
        (any(map(str.isspace, value)), "has a space"),
        ("@" in value, "has an at sign, which stands before a version"),
        (len(value) > _MAX_NAME_LENGTH, f"is beyond the length of {_MAX_NAME_LENGTH} characters"),
        (not value.isascii(), "has letters other than a-z"),
        (value != value.lower(), "has letters in upper case"),
        (not value[:1].isalnum(), "doesn't start with a letter or digit"),
        (not value[-1:].isalnum(), "doesn't end with a letter or digit"),
    )
    return next((reason for is_fault, reason in faults if is_fault), "has other signs than '-'")


def _shown(value: str) -> str:
    """Quote text from outside, short and with nothing that could confuse a terminal or a log."""
    return ascii(value if len(value) <= _SHOWN_LENGTH else f"{value[: _SHOWN_LENGTH - 3]}...")


def _whole_path_fault(path: str) -> str | None:
    faults = (
        (not path, "is empty"),
        (path.startswith("/"), "is absolute"),
        ("\\" in path, "contains a backslash"),
        (_has_unsafe_characters(path), "contains control, invisible or direction-changing characters"),
        (unicodedata.normalize("NFC", path) != path, "is not in Unicode normal form NFC"),
        (len(path.encode(errors="replace")) > MAX_PATH_BYTES, f"is longer than {MAX_PATH_BYTES} bytes"),
        (path.count("/") >= MAX_SEGMENTS, f"is deeper than {MAX_SEGMENTS} levels"),
        (path.casefold() in _RESERVED_PATHS, "is the place of a signature"),
    )
    return next((reason for is_fault, reason in faults if is_fault), None)


def _has_unsafe_characters(path: str) -> bool:
    """Whether any is control, format (bidi overrides are), surrogate, private, unassigned, or a space but ' '."""
    return any(unicodedata.category(char)[0] in "CZ" and char != " " for char in path)


def _segment_fault(segment: str) -> str | None:
    folded = segment.casefold()
    faults = (
        (not segment, "contains an empty segment"),
        (segment in {".", ".."}, f"contains a '{segment}' segment"),
        (_GIT_SEGMENT.fullmatch(folded) is not None, "contains a name that belongs to git"),
        (segment.startswith("-"), "contains a segment that begins with '-'"),
        (segment != segment.strip(" "), "contains a segment that begins or ends with a space"),
        (segment.endswith("."), "contains a segment that ends with a dot"),
        (not _WINDOWS_CHARACTERS.isdisjoint(segment), 'contains one of <>:"|?*'),
        (_WINDOWS_DEVICE.fullmatch(folded) is not None, "contains a name that Windows reserves"),
    )
    return next((reason for is_fault, reason in faults if is_fault), None)


def _kind_fault(suffix: str) -> str:
    if suffix in _PICKLE_SUFFIXES:
        return f"is refused: {suffix} files can hold pickled code that runs when they are loaded; save as .safetensors"
    if suffix in _CODE_SUFFIXES:
        return "is refused: an adapter holds no code"
    return "is refused: an adapter holds only .safetensors, .json, .jinja, .md, .txt, LICENSE and tokenizer files"


def _check_clashes(paths: list[str], *, field: str) -> None:
    """Refuse a path given twice, spellings that differ only in case, and a file where another path needs a folder."""
    taken: dict[str, str] = {}
    for index, path in enumerate(paths):
        where = f"{field}[{index}].path"
        if paths.index(path) < index:
            raise PathClash(f"{where}: {_shown(path)} is listed twice", field=where)
        for entry in (path, *(f"{parent}/" for parent in _parents(path))):
            other = taken.setdefault(_folded(entry), entry)
            if other != entry:
                raise PathClash(f"{where}: {_shown(entry)} clashes with {_shown(other)}", field=where)


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path.casefold()).rstrip("/")


def _parents(path: str) -> list[str]:
    return [str(parent) for parent in PurePosixPath(path).parents if str(parent) != "."]
