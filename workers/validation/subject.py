"""Everything the checks look at, read once from the folder; what couldn't be read is kept as the reason why."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from registry.base_models import strict_json
from registry.base_models.description import BaseDescription
from registry.base_models.modules import BaseModules, base_modules
from registry.base_models.safetensors_header import Header, HeaderError, read_header
from workers.validation.archive import ArchiveFault, Unpacked
from workers.validation.copies import embedding_of_copy, unchanged_copies
from workers.validation.device import Device
from workers.validation.kinds import CONFIG_FILE, WEIGHTS_FILE, Kind, kind_of, path_fault
from workers.validation.limits import DeclaredFile, Limits
from workers.validation.listing import Listing, list_folder, opened, read_small
from workers.validation.pairs import Layout, lay_out
from workers.validation.settings import Settings, read_settings
from workers.validation.weights import LoadTime, Peak, Scan, scan

_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Config:
    """adapter_config.json: its content, or why it can't be believed."""

    content: Mapping[str, object] | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Weights:
    """adapter_model.safetensors: its header, or what is wrong with it, and what one pass over its tensors found."""

    header: Header | None = None
    error: HeaderError | None = None
    peaks: Mapping[str, Peak] | None = None
    load: LoadTime | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """One upload.

    Args:
        folder: where its files lie; of an archive, where it was unpacked.
        listing: what lies there.
        declared: the manifest by path, if there is one.
        digests: SHA-256 in hex of each file that was worth reading.
        config: adapter_config.json.
        settings: what of it says where the weights go and how strongly.
        weights: adapter_model.safetensors.
        layout: its tensors in pairs; empty where there is no sound file.
        base: the base model revision.
        modules: its modules that can bear a LoRA.
        base_names: names the base is known by.
        base_hints: names that may be the base's.
        base_folder: where the base's own files lie, if they are here.
        limits: what this registry takes.
        copies: tensors that are unchanged copies of the base's own embeddings; `layout` is without them.
        archive_fault: why the archive that was uploaded was not unpacked.

    """

    folder: Path
    listing: Listing
    declared: Mapping[str, DeclaredFile] | None
    digests: Mapping[str, str]
    config: Config
    settings: Settings
    weights: Weights
    layout: Layout
    base: BaseDescription
    modules: BaseModules
    base_names: tuple[str, ...]
    base_hints: tuple[str, ...]
    limits: Limits
    base_folder: Path | None = None
    copies: frozenset[str] = frozenset()
    archive_fault: ArchiveFault | None = None

    @property
    def kept(self) -> tuple[str, ...]:
        """Paths that make the adapter: what was declared, or the files of known use."""
        return tuple(path for path in sorted(self.listing.files) if _belongs(path, self.declared))


def read_subject(
    upload: Unpacked,
    *,
    declared: tuple[DeclaredFile, ...] | None,
    base: BaseDescription,
    base_names: tuple[str, ...],
    base_hints: tuple[str, ...],
    base_folder: Path | None,
    limits: Limits,
    device: Device | None,
) -> Subject:
    """Read the upload, each file once.

    Raises:
        NotADirectoryError: `folder` is no folder.

    """
    folder = upload.folder
    listing = list_folder(folder, limits)
    wanted = None if declared is None else {file.path: file for file in declared}
    digests: dict[str, str] = {}
    for path, size in listing.files.items():
        if path != WEIGHTS_FILE and _belongs(path, wanted) and _is_worth_reading(path, size, wanted, limits):
            digests[path] = _digest(folder, path)
    weights, weights_digest = _read_weights(folder, listing, wanted, limits, device)
    if weights_digest:
        digests[WEIGHTS_FILE] = weights_digest
    config = _read_config(folder, listing, limits)
    copies = _copies(folder, weights.header, base, base_folder)
    spans = weights.header.tensors if weights.header else ()
    return Subject(
        folder=folder,
        listing=listing,
        declared=wanted,
        digests=digests,
        config=config,
        settings=read_settings(config.content or {}),
        weights=weights,
        layout=lay_out(span for span in spans if span.name not in copies),
        base=base,
        modules=base_modules(base),
        base_names=base_names,
        base_hints=base_hints,
        limits=limits,
        base_folder=base_folder,
        copies=copies,
        archive_fault=upload.fault,
    )


def size_limit(path: str, limits: Limits) -> int:
    """The largest size in bytes that the file at `path` may have."""
    if path == WEIGHTS_FILE:
        return limits.max_weights_bytes
    return limits.max_config_bytes if path == CONFIG_FILE else limits.max_file_bytes


def _belongs(path: str, declared: Mapping[str, DeclaredFile] | None) -> bool:
    if declared is not None:
        return path in declared
    return kind_of(path) in {Kind.PART, Kind.DOCUMENT, Kind.TOKENIZER} and path_fault(path) is None


def _is_worth_reading(path: str, size: int, declared: Mapping[str, DeclaredFile] | None, limits: Limits) -> bool:
    """Whether the answer can still depend on the content: a file of the wrong size is refused unread."""
    expected = declared[path].size if declared is not None and path in declared else size
    return size == expected and size <= size_limit(path, limits)


def _digest(folder: Path, path: str) -> str:
    digest = sha256()
    with opened(folder, path) as descriptor, open(descriptor, "rb", buffering=0, closefd=False) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _read_weights(
    folder: Path,
    listing: Listing,
    declared: Mapping[str, DeclaredFile] | None,
    limits: Limits,
    device: Device | None,
) -> tuple[Weights, str | None]:
    size = listing.files.get(WEIGHTS_FILE)
    if size is None or size > limits.max_weights_bytes:
        return Weights(), None
    with opened(folder, WEIGHTS_FILE) as descriptor:
        weights = _header(descriptor, size, limits)
        if weights.header is None and not _is_worth_reading(WEIGHTS_FILE, size, declared, limits):
            return weights, None
        found: Scan = scan(descriptor, size, weights.header, device=device)
    return Weights(weights.header, weights.error, found.peaks, found.load), found.sha256


def _copies(folder: Path, header: Header | None, base: BaseDescription, base_folder: Path | None) -> frozenset[str]:
    spans = [span for span in header.tensors if embedding_of_copy(span.name)] if header else []
    if header is None or base_folder is None or not spans:
        return frozenset()
    with opened(folder, WEIGHTS_FILE) as descriptor:
        return unchanged_copies(descriptor, header.data_start, spans, base=base, base_folder=base_folder)


def _header(descriptor: int, size: int, limits: Limits) -> Weights:
    try:
        header = read_header(descriptor, size)
    except HeaderError as error:
        return Weights(error=error)
    if len(header.tensors) > limits.max_tensors:
        message = f"the file holds {len(header.tensors):,} tensors, the limit is {limits.max_tensors:,}"
        return Weights(error=HeaderError(message, code="too_many_tensors"))
    return Weights(header=header)


def _read_config(folder: Path, listing: Listing, limits: Limits) -> Config:
    size = listing.files.get(CONFIG_FILE)
    if size is None:
        return Config()
    if size > limits.max_config_bytes:
        return Config(fault=f"it has {size:,} bytes, the limit is {limits.max_config_bytes:,}")
    try:
        content = strict_json.parse(read_small(folder, CONFIG_FILE, limits.max_config_bytes))
    except strict_json.StrictJsonError as error:
        return Config(fault=str(error))
    if not isinstance(content, dict):
        return Config(fault=f"it must be a JSON object, not {type(content).__name__}")
    return Config(content=content)
