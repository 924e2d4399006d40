"""The demo's base model, cut after its first layers: the same engine does the same work, and answers sooner."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

from registry.base_models.safetensors_header import read_header

if TYPE_CHECKING:
    from pathlib import Path

BASE_NAME, BASE_REVISION = "smollm2-cut", "r1"
_WEIGHTS, _CONFIG = "model.safetensors", "config.json"
_LAYER = re.compile(r"model\.layers\.(\d+)\.")


def cut_base(whole: Path, folder: Path, *, layers: int) -> Path:
    """Write the first `layers` layers of the model in `whole` to the new `folder`, with everything else as it is."""
    folder.mkdir(parents=True)
    for file in whole.iterdir():
        if file.name not in {_WEIGHTS, _CONFIG}:
            shutil.copyfile(file, folder / file.name)
    config = json.loads((whole / _CONFIG).read_text(encoding="utf-8"))
    config["num_hidden_layers"] = min(layers, config["num_hidden_layers"])
    (folder / _CONFIG).write_text(json.dumps(config, indent=2), encoding="utf-8")
    _cut_weights(whole / _WEIGHTS, folder / _WEIGHTS, layers)
    return folder


def _cut_weights(whole: Path, target: Path, layers: int) -> None:
    with whole.open("rb") as source, target.open("wb") as out:
        header = read_header(source.fileno(), whole.stat().st_size)
        kept = [span for span in header.tensors if _is_kept(span.name, layers)]
        entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
        end = 0
        for span in kept:
            length = span.end - span.begin
            entries[span.name] = {
                "dtype": span.dtype,
                "shape": list(span.shape),
                "data_offsets": [end, end + length],
            }
            end += length
        text = json.dumps(entries).encode()
        text += b" " * (-len(text) % 8)
        out.write(len(text).to_bytes(8, "little") + text)
        for span in kept:
            source.seek(header.data_start + span.begin)
            out.write(source.read(span.end - span.begin))


def _is_kept(name: str, layers: int) -> bool:
    layer = _LAYER.match(name)
    return layer is None or int(layer[1]) < layers
