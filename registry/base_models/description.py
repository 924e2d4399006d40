"""What one revision of a base model is: its architecture, the digests of what it reads, the shape of every tensor.

Pure: no Django. Made from a model folder where the weights are (`describe_folder`), sent as JSON, and checked again on
arrival (`BaseDescription.from_json`). Weights are read, never copied.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import rfc8785

from registry.base_models import safetensors_header, strict_json

TOKENIZER_FILES: Final = (
    "added_tokens.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
)
TEMPLATE_FILE: Final = "chat_template.jinja"
MAX_TENSORS: Final = 400_000
MAX_WEIGHT_FILES: Final = 4096
MAX_VOCABULARY: Final = 1 << 31
MAX_FILE_BYTES: Final = 1 << 48
MAX_JSON_BYTES: Final = 64 << 20
_CHUNK: Final = 1 << 20
_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}", re.ASCII)

Progress = Callable[[int, int], None]


class DescriptionError(ValueError):
    """A base model can't be described, or a description can't be believed.

    `field` is the part of the description or the file it is about.
    """

    code = "base_description_invalid"
    retryable = False

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor of the base: `dtype` as safetensors names it, `shape` as stored."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WeightFile:
    """One weight file: size in bytes and SHA-256 in hex."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BaseDescription:
    """A base model revision. Digests are SHA-256 in hex; None where the model has no such part."""

    architecture: str
    config_digest: str
    tokenizer_digest: str | None
    chat_template_digest: str | None
    vocab_size: int
    tied_embeddings: bool
    tensors: Mapping[str, TensorInfo]
    weight_files: Mapping[str, WeightFile]

    @property
    def digest(self) -> str:
        """SHA-256 in hex over the RFC 8785 form of `to_json()`: the identity of this revision."""
        return hashlib.sha256(rfc8785.dumps(self.to_json())).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The description as JSON values; `from_json` reads it back."""
        return {
            "architecture": self.architecture,
            "config_digest": self.config_digest,
            "tokenizer_digest": self.tokenizer_digest,
            "chat_template_digest": self.chat_template_digest,
            "vocab_size": self.vocab_size,
            "tied_embeddings": self.tied_embeddings,
            "tensors": {
                name: {"dtype": info.dtype, "shape": list(info.shape)} for name, info in sorted(self.tensors.items())
            },
            "weight_files": {
                name: {"size": file.size, "sha256": file.sha256} for name, file in sorted(self.weight_files.items())
            },
        }

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Read a description that came from outside.

        Args:
            data: what `to_json` gave, parsed.

        Raises:
            DescriptionError: a part is missing, unknown, of the wrong type or out of bounds; `field` names it.

        """
        content = _object(data, "description")
        _require_keys(content, cls.__slots__, "description")
        tied = content["tied_embeddings"]
        if not isinstance(tied, bool):
            raise DescriptionError("tied_embeddings: must be true or false", field="tied_embeddings")
        return cls(
            architecture=_architecture(content["architecture"]),
            config_digest=_digest(content["config_digest"], "config_digest"),
            tokenizer_digest=_optional_digest(content["tokenizer_digest"], "tokenizer_digest"),
            chat_template_digest=_optional_digest(content["chat_template_digest"], "chat_template_digest"),
            vocab_size=_whole(content["vocab_size"], "vocab_size", low=1, high=MAX_VOCABULARY),
            tied_embeddings=tied,
            tensors=_tensors(content["tensors"]),
            weight_files=_weight_files(content["weight_files"]),
        )


def describe_folder(folder: Path, *, progress: Progress | None = None, with_weights: bool = True) -> BaseDescription:
    """Describe the model in `folder` (config.json, tokenizer files, one model.safetensors or an index with shards).

    Links are followed, as model caches are made of them. Every weight file is read once, by chunks, for its digest.

    Args:
        folder: the model folder.
        progress: called with (bytes hashed, bytes in all) after each chunk.
        with_weights: whether to read the weights; without, only their headers are read and `weight_files` is empty, so
            that the description serves to check adapters, and no registry takes it.

    Raises:
        DescriptionError: a file is missing or unsound; `field` is its name.
        OSError: a file can't be read.

    """
    config_bytes = _read(folder / "config.json")
    config = _object(_parse(config_bytes, "config.json"), "config.json")
    headers = {name: _header(folder / name) for name in _shard_names(folder)}
    tensors = _merge(headers)
    sizes = {name: (folder / name).stat().st_size for name in headers}
    reporter = _Reporter(sum(sizes.values()), progress)
    hashed = sizes if with_weights else {}
    return BaseDescription(
        architecture=_architecture_of(config),
        config_digest=hashlib.sha256(config_bytes).hexdigest(),
        tokenizer_digest=_folder_tokenizer_digest(folder),
        chat_template_digest=_folder_template_digest(folder),
        vocab_size=_vocabulary_of(config),
        tied_embeddings=_tied(config, tensors),
        tensors=tensors,
        weight_files={name: WeightFile(size, _sha256(folder / name, reporter)) for name, size in hashed.items()},
    )


def tokenizer_digest(digests: Mapping[str, str]) -> str | None:
    """One digest for the tokenizer: SHA-256 over the RFC 8785 map of its files to their digests.

    Args:
        digests: file names to SHA-256 in hex; names that are no tokenizer files are passed over.

    Returns:
        None if there is no tokenizer file.

    """
    present = {name: digests[name] for name in TOKENIZER_FILES if name in digests}
    return hashlib.sha256(rfc8785.dumps(present)).hexdigest() if present else None


def inline_template_digest(tokenizer_config: Mapping[str, object]) -> str | None:
    """SHA-256 of the chat template inside the content of a tokenizer_config.json; None if it has none."""
    template = tokenizer_config.get("chat_template")
    if template is None:
        return None
    text = template if isinstance(template, str) else json.dumps(template, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _folder_tokenizer_digest(folder: Path) -> str | None:
    present = (folder / name for name in TOKENIZER_FILES if (folder / name).is_file())
    return tokenizer_digest({path.name: _sha256(path, _Reporter(0, None)) for path in present})


def _folder_template_digest(folder: Path) -> str | None:
    template, tokenizer_config = folder / TEMPLATE_FILE, folder / "tokenizer_config.json"
    if template.is_file():
        return hashlib.sha256(_read(template)).hexdigest()
    if not tokenizer_config.is_file():
        return None
    content = _parse(_read(tokenizer_config), tokenizer_config.name)
    return inline_template_digest(_object(content, tokenizer_config.name))


@dataclass(slots=True)
class _Reporter:
    total: int
    progress: Progress | None
    done: int = 0

    def advance(self, count: int) -> None:
        self.done += count
        if self.progress:
            self.progress(self.done, self.total)


def _sha256(path: Path, reporter: _Reporter) -> str:
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            reporter.advance(len(chunk))
    return digest.hexdigest()


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise DescriptionError(f"the model folder has no {path.name}", field=path.name)
    with path.open("rb") as file:
        data = file.read(MAX_JSON_BYTES + 1)
    if len(data) > MAX_JSON_BYTES:
        raise DescriptionError(f"{path.name} is larger than {MAX_JSON_BYTES >> 20} MiB", field=path.name)
    return data


def _parse(data: bytes, name: str) -> object:
    try:
        return strict_json.parse(data)
    except strict_json.StrictJsonError as error:
        raise DescriptionError(f"{name}: {error}", field=name) from error


def _shard_names(folder: Path) -> list[str]:
    single, index = "model.safetensors", "model.safetensors.index.json"
    if (folder / single).is_file():
        return [single]
    if not (folder / index).is_file():
        raise DescriptionError(f"the model folder has neither {single} nor {index}", field=single)
    weight_map = _object(_object(_parse(_read(folder / index), index), index).get("weight_map"), index)
    names = {str(name) for name in weight_map.values()}
    for name in names:
        if not _FILE_NAME.fullmatch(name) or not (folder / name).is_file():
            raise DescriptionError(f"{index} names the shard {name!a}, which is not in the folder", field=index)
    return sorted(names)


def _header(path: Path) -> safetensors_header.Header:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return safetensors_header.read_header(descriptor, os.fstat(descriptor).st_size, max_bytes=100_000_000)
    except safetensors_header.HeaderError as error:
        raise DescriptionError(f"{path.name}: {error}", field=path.name) from error
    finally:
        os.close(descriptor)


def _merge(headers: Mapping[str, safetensors_header.Header]) -> dict[str, TensorInfo]:
    tensors: dict[str, TensorInfo] = {}
    for shard, header in headers.items():
        for span in header.tensors:
            if span.name in tensors:
                raise DescriptionError(f"tensor {span.name} stands in two weight files, also in {shard}", field=shard)
            tensors[span.name] = TensorInfo(span.dtype, span.shape)
    if not tensors:
        raise DescriptionError("the weight files hold no tensors", field="tensors")
    return tensors


def _architecture_of(config: Mapping[str, object]) -> str:
    listed = config.get("architectures")
    if not isinstance(listed, list) or not listed:
        raise DescriptionError("config.json names no architecture", field="config.json")
    return _architecture(listed[0])


def _vocabulary_of(config: Mapping[str, object]) -> int:
    inner = config.get("text_config")
    value = config.get("vocab_size", inner.get("vocab_size") if isinstance(inner, dict) else None)
    return _whole(value, "vocab_size", low=1, high=MAX_VOCABULARY)


def _tied(config: Mapping[str, object], tensors: Mapping[str, TensorInfo]) -> bool:
    said = config.get("tie_word_embeddings")
    return said if isinstance(said, bool) else "lm_head.weight" not in tensors


def _object(value: object, field: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise DescriptionError(f"{field}: must be a JSON object", field=field)
    return value


def _require_keys(content: Mapping[str, object], keys: tuple[str, ...] | set[str], field: str) -> None:
    wanted = set(keys)
    if missing := sorted(wanted - content.keys()):
        raise DescriptionError(f"{field}: {', '.join(missing)} is missing", field=missing[0])
    if unknown := sorted(content.keys() - wanted):
        raise DescriptionError(f"{field}: {unknown[0][:80]!a} is unknown", field=field)


def _architecture(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,127}", value, re.ASCII):
        raise DescriptionError("architecture: must be a class name such as LlamaForCausalLM", field="architecture")
    return value


def _digest(value: object, field: str) -> str:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise DescriptionError(f"{field}: must be a SHA-256 in lower-case hex", field=field)
    return value


def _optional_digest(value: object, field: str) -> str | None:
    return None if value is None else _digest(value, field)


def _whole(value: object, field: str, *, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise DescriptionError(f"{field}: must be a whole number from {low} to {high}", field=field)
    return value


def _tensors(value: object) -> dict[str, TensorInfo]:
    content = _object(value, "tensors")
    if not 1 <= len(content) <= MAX_TENSORS:
        raise DescriptionError(f"tensors: must name 1 to {MAX_TENSORS} tensors", field="tensors")
    return {_tensor_name(name): _tensor(name, entry) for name, entry in content.items()}


def _tensor_name(name: object) -> str:
    longest = safetensors_header.MAX_NAME_LENGTH
    if not isinstance(name, str) or not 1 <= len(name) <= longest or not name.isprintable():
        raise DescriptionError(f"tensors: {ascii(name)[:80]} is no tensor name", field="tensors")
    return name


def _tensor(name: str, entry: object) -> TensorInfo:
    field = f"tensors.{name}"
    content = _object(entry, field)
    _require_keys(content, ("dtype", "shape"), field)
    dtype, shape = content["dtype"], content["shape"]
    if not isinstance(dtype, str) or dtype not in safetensors_header.DTYPE_BITS:
        raise DescriptionError(f"{field}: the dtype is unknown", field=field)
    if not isinstance(shape, list) or len(shape) > safetensors_header.MAX_DIMENSIONS:
        raise DescriptionError(f"{field}: the shape must be a short list of whole numbers", field=field)
    return TensorInfo(dtype, tuple(_whole(size, field, low=0, high=1 << 40) for size in shape))


def _weight_files(value: object) -> dict[str, WeightFile]:
    content = _object(value, "weight_files")
    if not 1 <= len(content) <= MAX_WEIGHT_FILES:
        raise DescriptionError(f"weight_files: must name 1 to {MAX_WEIGHT_FILES} files", field="weight_files")
    return {name: _weight_file(name, entry) for name, entry in content.items()}


def _weight_file(name: object, entry: object) -> WeightFile:
    if not isinstance(name, str) or not _FILE_NAME.fullmatch(name):
        raise DescriptionError(f"weight_files: {ascii(name)[:80]} is no file name", field="weight_files")
    field = f"weight_files.{name}"
    content = _object(entry, field)
    _require_keys(content, ("size", "sha256"), field)
    size = _whole(content["size"], field, low=0, high=MAX_FILE_BYTES)
    return WeightFile(size=size, sha256=_digest(content["sha256"], field))
