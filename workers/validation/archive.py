"""An upload that is one archive, unpacked so that no archive can write elsewhere, fill the disk or hide something.

Only plain files with sound relative paths are written, into a folder that is removed afterwards. Names, links, counts
and sizes are judged before a byte is written; sizes and the ratio of unpacked to packed are kept to while writing, as
an archive's own figures may lie. Archives inside archives stay packed.
"""

import gzip
import os
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from workers.validation.kinds import CONFIG_FILE, WEIGHTS_FILE, is_archive, path_fault
from workers.validation.limits import Limits
from workers.validation.listing import list_folder, opened
from workers.validation.report import shown

_COPIED: Final = 1 << 20
# Weights hardly shrink; text does, to a tenth or so. Small files may shrink as they like.
MAX_RATIO: Final = 100
_RATIO_FREE_BYTES: Final = 4 << 20
_LARGEST_READ: Final = 8 << 20
_GZIP_MARK: Final = b"\x1f\x8b"
_ENCRYPTED: Final = 0x1
# Others (LZMA, Zstandard) may ask for gigabytes of memory before they give a byte.
_KNOWN_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_UNREADABLE: Final = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError)
_ADVICE: Final = "pack the adapter's own files anew, or upload them unpacked"


class ArchiveFault(ValueError):
    """The archive is refused. `code` is one stable word; the message names the archive and says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What to check: `folder` itself, or what its one archive holds; `archive` is that archive's name.

    With a `fault` nothing was unpacked, and `folder` is the one with the archive.
    """

    folder: Path
    archive: str | None = None
    fault: ArchiveFault | None = None


@contextmanager
def unpacked(folder: Path, limits: Limits) -> Iterator[Unpacked]:
    """Give the folder to check: what is in the archive, if `folder` holds one and not the adapter's own files.

    Raises:
        NotADirectoryError: `folder` is no folder.
        OSError: the archive can't be read, or there is no room to unpack it.

    """
    name = _only_archive(folder, limits)
    if name is None:
        yield Unpacked(folder)
        return
    with tempfile.TemporaryDirectory(prefix="lorekeeper-unpack-") as scratch:
        try:
            with opened(folder, name) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
                _unpack(name, file, Path(scratch), limits)
        except ArchiveFault as fault:
            yield Unpacked(folder, name, fault)
        else:
            yield Unpacked(Path(scratch), name)


def _only_archive(folder: Path, limits: Limits) -> str | None:
    files = list_folder(folder, limits).files
    archives = [path for path in files if "/" not in path and is_archive(path)]
    return archives[0] if len(archives) == 1 and not {CONFIG_FILE, WEIGHTS_FILE} & files.keys() else None


@dataclass(frozen=True, slots=True)
class _Member:
    """One entry of an archive: `size` is its unpacked size as the archive says; `reference` is the library's own."""

    name: str
    size: int
    is_folder: bool
    is_plain: bool
    is_sealed: bool
    reference: zipfile.ZipInfo | tarfile.TarInfo


def _unpack(name: str, file: IO[bytes], target: Path, limits: Limits) -> None:
    packed = os.fstat(file.fileno()).st_size
    try:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                _unpack_zip(name, archive, target, _Budget(name, packed, limits))
        else:
            _unpack_tar(name, _plain_tar(file), target, _Budget(name, packed, limits))
    except _UNREADABLE as error:
        if isinstance(error, ArchiveFault):
            raise
        reason = shown(str(error) or type(error).__name__)
        message = f"the archive {shown(name)} is damaged, or can't be unpacked as zip or tar ({reason}): {_ADVICE}"
        raise ArchiveFault("archive_unreadable", message) from error


def _unpack_zip(name: str, archive: zipfile.ZipFile, target: Path, budget: "_Budget") -> None:
    if len(archive.infolist()) > budget.limits.max_files:
        raise _too_many(name, budget.limits)
    members = [_zip_member(info) for info in archive.infolist()]
    _judge(name, members, budget)
    for member in members:
        if not member.is_folder and isinstance(member.reference, zipfile.ZipInfo):
            with archive.open(member.reference) as source:
                _write(source, target / member.name, budget)


def _plain_tar(file: IO[bytes]) -> IO[bytes] | gzip.GzipFile:
    file.seek(0)
    is_packed = file.read(len(_GZIP_MARK)) == _GZIP_MARK
    file.seek(0)
    return gzip.GzipFile(fileobj=file, mode="rb") if is_packed else file


def _unpack_tar(name: str, file: IO[bytes] | gzip.GzipFile, target: Path, budget: "_Budget") -> None:
    """Two passes, as a tar has no table of contents: nothing is written before all of it was looked at."""
    with tarfile.open(fileobj=_SmallReads(file), mode="r:") as archive:  # type: ignore[call-overload] # read, seek, tell
        members = list[_Member]()
        while (info := archive.next()) is not None:
            members.append(_tar_member(info))
            if len(members) > budget.limits.max_files:
                raise _too_many(name, budget.limits)
            _judge_sizes(name, members, budget)
        _judge(name, members, budget)
        for member in members:
            source = archive.extractfile(member.reference) if isinstance(member.reference, tarfile.TarInfo) else None
            if source is not None and not member.is_folder:
                _write(source, target / member.name, budget)


class _SmallReads:
    """A file that gives no more than a few MiB at once: tarfile reads a header of any size into memory."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LARGEST_READ:
            raise tarfile.ReadError(f"a header claims {size:,} bytes")
        return self._file.read(size)

    def seek(self, position: int) -> int:
        return self._file.seek(position)

    def tell(self) -> int:
        return self._file.tell()


def _zip_member(info: zipfile.ZipInfo) -> _Member:
    kind = stat.S_IFMT(info.external_attr >> 16)
    return _Member(
        # zipfile cuts names at a NUL and turns backslashes round on Windows: the name as it was written is judged.
        name=info.orig_filename if "\0" in info.orig_filename else info.filename.removesuffix("/"),
        size=info.file_size,
        is_folder=info.is_dir(),
        is_plain=kind in {0, stat.S_IFREG, stat.S_IFDIR},
        is_sealed=bool(info.flag_bits & _ENCRYPTED) or info.compress_type not in _KNOWN_METHODS,
        reference=info,
    )


def _tar_member(info: tarfile.TarInfo) -> _Member:
    return _Member(
        name=info.name.removeprefix("./") if info.name != "./" else info.name,
        size=info.size,
        is_folder=info.isdir(),
        is_plain=info.isreg() or info.isdir(),
        is_sealed=False,
        reference=info,
    )


def _judge(name: str, members: Iterable[_Member], budget: "_Budget") -> None:
    listed, seen = list(members), set[str]()
    for member in listed:
        if member.is_sealed:
            message = f"{shown(name)}: {shown(member.name)} is encrypted or packed by a rare method: {_ADVICE}"
            raise ArchiveFault("archive_sealed", message)
        if not member.is_plain:
            message = f"{shown(name)}: {shown(member.name)} is a link or device and no plain file: {_ADVICE}"
            raise ArchiveFault("archive_link", message)
        fault = None if member.is_folder and member.name in {".", ""} else path_fault(member.name)
        if fault:
            raise ArchiveFault("archive_path", f"{shown(name)}: unsafe path in the archive: {fault}: {_ADVICE}")
        if not member.is_folder and member.name.casefold() in seen:
            message = (
                f"{shown(name)}: {shown(member.name)} is a duplicate: readers differ in which they take: {_ADVICE}"
            )
            raise ArchiveFault("archive_duplicate", message)
        seen.add(member.name.casefold())
    _judge_sizes(name, listed, budget)


def _judge_sizes(name: str, members: Iterable[_Member], budget: "_Budget") -> None:
    total = sum(member.size for member in members)
    fault = budget.fault(total)
    if fault:
        raise ArchiveFault("archive_size", f"{shown(name)} {fault}")


def _too_many(name: str, limits: Limits) -> ArchiveFault:
    message = f"{shown(name)} holds more than {limits.max_files} entries: {_ADVICE}"
    return ArchiveFault("archive_too_many", message)


@dataclass(slots=True)
class _Budget:
    """What one archive may still unpack to."""

    name: str
    packed: int
    limits: Limits
    written: int = 0

    def fault(self, total: int) -> str | None:
        """Why `total` unpacked bytes are too many, or None."""
        limit = self.limits.max_weights_bytes + self.limits.max_file_bytes
        if total > limit:
            return f"unpacks to a size of {total:,} bytes, the limit is {limit:,}: {_ADVICE}"
        if total > _RATIO_FREE_BYTES and total > self.packed * MAX_RATIO:
            return (
                f"unpacks from {self.packed:,} bytes to a size of {total:,} or more, a ratio above {MAX_RATIO}, as a "
                f"zip bomb does: {_ADVICE}"
            )
        return None

    def spend(self, count: int) -> None:
        self.written += count
        fault = self.fault(self.written)
        if fault:
            raise ArchiveFault("archive_size", f"{shown(self.name)} {fault}")


def _write(source: IO[bytes], path: Path, budget: _Budget) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        out = path.open("xb")
    except (FileExistsError, NotADirectoryError) as error:
        message = f"{shown(budget.name)}: {shown(path.name)} stands where another path needs a folder: {_ADVICE}"
        raise ArchiveFault("archive_duplicate", message) from error
    with out:
        while chunk := source.read(_COPIED):
            budget.spend(len(chunk))
            out.write(chunk)
