import copy
import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from registry.base_models.description import (
    BaseDescription,
    DescriptionError,
    describe_folder,
    inline_template_digest,
    tokenizer_digest,
)

TENSORS = {
    "model.embed_tokens.weight": [16, 4],
    "model.layers.0.self_attn.q_proj.weight": [4, 4],
    "model.norm.weight": [4],
}
CONFIG: dict[str, Any] = {"architectures": ["LlamaForCausalLM"], "vocab_size": 16, "tie_word_embeddings": True}


def weights(tensors: dict[str, list[int]]) -> bytes:
    header, position = {}, 0
    for name, shape in tensors.items():
        size = 2
        for width in shape:
            size *= width
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [position, position + size]}
        position += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(position)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A whole model in one file."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ inline }}"}))
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    (tmp_path / "model.safetensors").write_bytes(weights(TENSORS))
    return tmp_path


def test_a_model_folder_is_described(folder: Path) -> None:
    found = describe_folder(folder)
    content = (folder / "model.safetensors").read_bytes()
    assert found.architecture == "LlamaForCausalLM"
    assert (found.vocab_size, found.tied_embeddings) == (16, True)
    assert {name: list(info.shape) for name, info in found.tensors.items()} == TENSORS
    assert found.weight_files["model.safetensors"].sha256 == hashlib.sha256(content).hexdigest()
    assert found.weight_files["model.safetensors"].size == len(content)
    assert found.config_digest == hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    assert found.chat_template_digest == hashlib.sha256(b"{{ messages }}").hexdigest()


def test_without_its_weights_a_model_is_described_for_checks_and_not_for_a_registry(folder: Path) -> None:
    found = describe_folder(folder, with_weights=False)
    assert found.tensors == describe_folder(folder).tensors
    assert found.weight_files == {}
    with pytest.raises(DescriptionError, match="weight_files"):
        BaseDescription.from_json(json.loads(json.dumps(found.to_json())))


def test_the_description_survives_json_and_its_digest_is_canonical(folder: Path) -> None:
    found = describe_folder(folder)
    content = json.loads(json.dumps(found.to_json()))
    assert BaseDescription.from_json(content) == found
    assert found.digest == hashlib.sha256(rfc8785.dumps(content)).hexdigest()


def test_any_changed_byte_gives_another_digest(folder: Path) -> None:
    before = describe_folder(folder).digest
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    assert describe_folder(folder).digest != before


def test_a_model_in_shards_is_described_through_its_index(folder: Path) -> None:
    whole = describe_folder(folder)
    (folder / "model.safetensors").unlink()
    names = list(TENSORS)
    shards = {"model-00001-of-00002.safetensors": names[:1], "model-00002-of-00002.safetensors": names[1:]}
    for shard, members in shards.items():
        (folder / shard).write_bytes(weights({name: TENSORS[name] for name in members}))
    index = {"weight_map": {name: shard for shard, members in shards.items() for name in members}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    found = describe_folder(folder)
    assert found.tensors == whole.tensors
    assert found.weight_files.keys() == shards.keys()


def test_links_of_a_model_cache_are_followed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    snapshot = tmp_path_factory.mktemp("snapshot")
    for path in folder.iterdir():
        (snapshot / path.name).symlink_to(path)
    assert describe_folder(snapshot) == describe_folder(folder)


def test_progress_ends_at_the_whole(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    describe_folder(folder, progress=lambda done, total: seen.append((done, total)))
    size = (folder / "model.safetensors").stat().st_size
    assert seen[-1] == (size, size)


def test_without_a_tokenizer_or_template_their_digests_are_none(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (folder / name).unlink()
    found = describe_folder(folder)
    assert (found.tokenizer_digest, found.chat_template_digest) == (None, None)


def test_a_template_inside_the_tokenizer_config_is_found(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    assert describe_folder(folder).chat_template_digest == hashlib.sha256(b"{{ inline }}").hexdigest()
    assert inline_template_digest({"chat_template": [{"name": "default", "template": "x"}]})


def test_the_tokenizer_digest_looks_at_tokenizer_files_alone() -> None:
    assert tokenizer_digest({"README.md": "0" * 64}) is None
    assert tokenizer_digest({"vocab.json": "0" * 64, "x": "1"}) == tokenizer_digest({"vocab.json": "0" * 64})


def test_tied_embeddings_are_read_from_the_tensors_when_the_config_is_silent(folder: Path) -> None:
    silent = {key: value for key, value in CONFIG.items() if key != "tie_word_embeddings"}
    (folder / "config.json").write_text(json.dumps(silent))
    assert describe_folder(folder).tied_embeddings
    (folder / "model.safetensors").write_bytes(weights({**TENSORS, "lm_head.weight": [16, 4]}))
    assert not describe_folder(folder).tied_embeddings


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(DescriptionError, match=name) as caught:
        describe_folder(folder)
    assert caught.value.field == name


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"[]"),
        ("config.json", b"["),
        ("config.json", b'{"architectures": []}'),
        ("config.json", b'{"architectures": ["a b"], "vocab_size": 1}'),
        ("config.json", b'{"architectures": ["A"], "vocab_size": 0}'),
        ("config.json", b'{"architectures": ["A"]}'),
        ("model.safetensors", b"short"),
        ("model.safetensors", weights({})),
        ("model.safetensors", weights(TENSORS)[:-1]),
        ("tokenizer_config.json", b"nothing"),
    ],
)
def test_an_unsound_file_is_refused(folder: Path, name: str, content: bytes) -> None:
    if name == "tokenizer_config.json":
        (folder / "chat_template.jinja").unlink()
    (folder / name).write_bytes(content)
    with pytest.raises(DescriptionError):
        describe_folder(folder)


@pytest.mark.parametrize("shard", ["../model.safetensors", "/etc/passwd", "missing.safetensors", ""])
def test_an_index_that_leads_elsewhere_is_refused(folder: Path, shard: str) -> None:
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": shard}}))
    with pytest.raises(DescriptionError, match="index"):
        describe_folder(folder)


def test_a_tensor_in_two_shards_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    (folder / "b.safetensors").write_bytes((folder / "a.safetensors").read_bytes())
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(DescriptionError, match="two weight files"):
        describe_folder(folder)


ABSENT = object()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), []),
        ((), None),
        (("architecture",), ABSENT),
        (("architecture",), "Llama; DROP TABLE"),
        (("architecture",), 7),
        (("more",), 1),
        (("config_digest",), None),
        (("config_digest",), "A" * 64),
        (("tokenizer_digest",), "0" * 63),
        (("chat_template_digest",), 1),
        (("vocab_size",), 0),
        (("vocab_size",), True),
        (("vocab_size",), 16.0),
        (("vocab_size",), 1 << 40),
        (("tied_embeddings",), 1),
        (("tensors",), {}),
        (("tensors",), []),
        (("tensors", "model.norm.weight"), None),
        (("tensors", "model.norm.weight"), {"dtype": "F99", "shape": [1]}),
        (("tensors", "model.norm.weight"), {"dtype": "F32", "shape": [-1]}),
        (("tensors", "model.norm.weight"), {"dtype": "F32", "shape": [1] * 9}),
        (("tensors", "model.norm.weight"), {"dtype": "F32", "shape": "4"}),
        (("tensors", "model.norm.weight"), {"dtype": "F32"}),
        (("tensors", "model.norm.weight"), {"dtype": "F32", "shape": [4], "x": 1}),
        (("tensors", "a\nb"), {"dtype": "F32", "shape": [4]}),
        (("tensors", "x" * 600), {"dtype": "F32", "shape": [4]}),
        (("weight_files",), {}),
        (("weight_files", "../x"), {"size": 1, "sha256": "0" * 64}),
        (("weight_files", "model.safetensors"), {"size": -1, "sha256": "0" * 64}),
        (("weight_files", "model.safetensors"), {"size": 1, "sha256": "z" * 64}),
    ],
)
def test_a_description_from_outside_is_checked_in_every_part(folder: Path, path: tuple[str, ...], value: Any) -> None:
    content: Any = copy.deepcopy(describe_folder(folder).to_json())
    if not path:
        content = value
    else:
        place = content
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
        if value is ABSENT:
            del place[path[-1]]
    with pytest.raises(DescriptionError) as caught:
        BaseDescription.from_json(content)
    assert caught.value.field
    assert caught.value.message.isprintable()
