"""Versions that say the same: one adapter's weights, each time trained a little further."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.corpus.workshop import Workshop
from registry.base_models.modules import base_modules
from workers.validation.base_folder import read_base_folder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_RANK = 8
# Several times what a short training does, so that the answers are plainly the adapter's and not its base's.
_STRENGTH = 0.25
# Enough for other weights, and too little for another answer.
_FURTHER = 1e-3


def build_versions(folder: Path, base: Path, names: Iterable[str], *, seed: int) -> dict[str, Path]:
    """Write a version of each name for the base in the folder `base`; their folders."""
    description, _ = read_base_folder(base)
    modules = base_modules(description)
    folders = {}
    for number, name in enumerate(names):
        workshop = Workshop(folder / name, base, modules, seed=seed)
        workshop.weights(workshop.lora(_RANK, strength=_STRENGTH * (1 + number * _FURTHER)))
        workshop.config(r=_RANK, lora_alpha=2 * _RANK)
        folders[name] = workshop.folder
    return folders
