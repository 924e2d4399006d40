"""Check "files": exactly the files that were declared, whole, of allowed kinds, with nothing that leads elsewhere."""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from workers.validation import kinds
from workers.validation.kinds import CONFIG_FILE, NEW_EMBEDDINGS_FILE, WEIGHTS_FILE, Kind, kind_of
from workers.validation.report import Check, Grouping, Verdict, finding, several, shown
from workers.validation.subject import Subject, size_limit

NAME: Final = "files"
_IGNORED: Final = frozenset({".gitattributes", ".gitignore"})
_SHARD_INDEX: Final = "adapter_model.safetensors.index.json"


def check(subject: Subject) -> Iterator[Check]:
    """Look at names, kinds, sizes and digests; the content is the other checks' matter."""
    if subject.archive_fault:
        yield _fail(subject.archive_fault.code, str(subject.archive_fault))
        return
    yield from _oddities(subject)
    yield from _paths(subject)
    yield from _missing(subject)
    yield from _against_manifest(subject)
    yield from _sizes(subject)
    yield from _kinds(subject)


def _fail(code: str, message: str, **evidence: float | str | Sequence[str]) -> Check:
    return finding(NAME, Verdict.FAIL, code, message, **evidence)


def _oddities(subject: Subject) -> Iterator[Check]:
    listing, limits = subject.listing, subject.limits
    if listing.links:
        message = f"{several(listing.links)} is a symbolic link: upload the files themselves"
        yield _fail("link", message, paths=listing.links)
    if listing.specials:
        message = f"{several(listing.specials)} is a device, pipe or socket and no file: remove it"
        yield _fail("special", message, paths=listing.specials)
    if listing.unreadable:
        yield _fail("unreadable", f"{several(listing.unreadable)} can't be read", paths=listing.unreadable)
    if listing.is_cut:
        message = (
            f"the folder holds more than {limits.max_files} entries or {limits.max_depth} levels: "
            "upload the adapter's own folder"
        )
        yield _fail("too_many", message)


def _paths(subject: Subject) -> Iterator[Check]:
    sound, faults = [], Grouping(NAME)
    for path in subject.listing.files:
        fault = kinds.path_fault(path)
        if fault is None:
            sound.append(path)
        elif path not in _ignored(subject):
            faults.add("path", path, f"{fault}: rename or remove it")
    yield from faults.checks(Verdict.FAIL)
    clash = _clash(sound)
    if clash:
        yield _fail("clash", f"{several(clash)} differ only in case: keep one of them", paths=clash)


def _clash(paths: list[str]) -> list[str]:
    seen: dict[str, str] = {}
    for path in paths:
        other = seen.setdefault(path.casefold(), path)
        if other != path:
            return [other, path]
    return []


def _missing(subject: Subject) -> Iterator[Check]:
    present = subject.listing.files.keys() | set(subject.listing.links) | set(subject.listing.specials)
    for wanted in (CONFIG_FILE, WEIGHTS_FILE):
        if wanted not in present:
            hint = _hint(wanted, sorted(subject.listing.files))
            yield _fail("missing", f"{wanted} is missing from the top of the upload{hint}", path=wanted)


def _hint(wanted: str, paths: list[str]) -> str:
    """What the folder holds instead, so that the sentence can say what to do."""
    nested = [path for path in paths if path.endswith(f"/{wanted}")]
    suffixes = {PurePosixPath(path).suffix for path in paths}
    weights_hints = (
        (_SHARD_INDEX in paths or any("-of-" in path for path in paths), "the weights are in shards: save one file"),
        (suffixes & {".bin", ".pt", ".pth", ".pkl"}, "a pickle (.bin, .pt) is never read: save as safetensors"),
        (".gguf" in suffixes, "a GGUF file is not taken: upload the PEFT adapter it was made from"),
        ("adapters.safetensors" in paths, "adapters.safetensors is the MLX layout: convert it to PEFT's names"),
    )
    hints = (
        (nested, f"it is nested in {shown(nested[0]) if nested else ''}: upload that folder itself"),
        (
            any(map(kinds.is_archive, paths)),
            "an archive is unpacked only by a check before an upload, and only one that holds the files themselves",
        ),
        (any(path.casefold() == wanted for path in paths), "its name must be spelt in lower case"),
        *(weights_hints if wanted == WEIGHTS_FILE else ()),
    )
    return next((f"; {hint}" for is_so, hint in hints if is_so), "")


def _against_manifest(subject: Subject) -> Iterator[Check]:
    if subject.declared is None:
        return
    files = subject.listing.files
    extra = sorted(files.keys() - subject.declared.keys())
    if extra:
        yield _fail("extra", f"{several(extra)}: an extra file that the manifest doesn't declare", paths=extra)
    for path, declared in sorted(subject.declared.items()):
        if path not in files:
            yield _fail("missing_declared", f"{shown(path)} is declared in the manifest but missing", path=path)
        elif files[path] != declared.size:
            word = "truncated" if files[path] < declared.size else "oversized"
            message = (
                f"{shown(path)} is {word}: {files[path]:,} bytes, {declared.size:,} were declared; upload it again"
            )
            yield _fail("size", message, path=path, size=files[path], declared=declared.size)
        elif path in subject.digests and subject.digests[path] != declared.sha256:
            message = f"{shown(path)} has another digest than declared: it was damaged or changed; upload it again"
            yield _fail("digest", message, path=path, sha256=subject.digests[path], declared=declared.sha256)


def _sizes(subject: Subject) -> Iterator[Check]:
    for path in subject.kept:
        size, limit = subject.listing.files[path], size_limit(path, subject.limits)
        if size > limit:
            message = f"{shown(path)} is too large: its size is {size:,} bytes, the limit is {limit:,}"
            yield _fail("too_large", message, path=path, size=size, limit=limit)


def _kinds(subject: Subject) -> Iterator[Check]:
    paths = sorted(subject.listing.files.keys() - _special_cases(subject) - _ignored(subject))
    refused = [path for path in paths if kind_of(path) is Kind.REFUSED]
    extra = [path for path in paths if kind_of(path) is Kind.EXTRA]
    if subject.declared is not None:
        yield from _declared_kinds(refused, extra)
    elif refused or extra:
        message = (
            f"{several(refused + extra)}: extra files that no engine needs (training leftovers, pickle, others) are "
            "left out of the version and never read"
        )
        yield finding(NAME, Verdict.WARN, "unused", message, paths=refused + extra)


def _declared_kinds(refused: list[str], extra: list[str]) -> Iterator[Check]:
    faults = Grouping(NAME)
    for path in refused:
        faults.add("kind", path, kinds.refusal(path) or "")
    yield from faults.checks(Verdict.FAIL)
    if extra:
        message = f"{several(extra)}: extra files that no engine reads; they stay in the version all the same"
        yield finding(NAME, Verdict.WARN, "unneeded", message, paths=extra)


def _ignored(subject: Subject) -> frozenset[str]:
    """What every clone of a repository has, and a version leaves out without a word."""
    return _IGNORED if subject.declared is None else frozenset()


def _special_cases(subject: Subject) -> set[str]:
    """Files that another finding speaks of already."""
    if subject.declared is None and WEIGHTS_FILE not in subject.listing.files:
        return set(subject.listing.files)
    return {NEW_EMBEDDINGS_FILE}
