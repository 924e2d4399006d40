"""Adapters that were built, not trained: each with weights of its own, so that its answers are its own too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.corpus.workshop import Workshop
from registry.base_models.modules import base_modules
from workers.validation.base_folder import read_base_folder

if TYPE_CHECKING:
    from pathlib import Path

    from bench.cache.plan import Plan

# Several times what a short training does. Of the answers of a short base, the two most alike are then still
# far enough apart to be told from one another.
_STRENGTH = 0.25
_PER_ADAPTER = 2


@dataclass(frozen=True, slots=True)
class Built:
    """One version: whose, of which adapter, what it is called, and its files."""

    number: int
    tenant: str
    adapter: str
    version: str
    folder: Path
    rank: int

    @property
    def label(self) -> str:
        """As the gateway calls it."""
        return f"{self.tenant}/{self.adapter}@{self.version}"

    @property
    def alias(self) -> str:
        """The alias that points to it."""
        return f"{self.adapter}-{self.version}"

    @property
    def size(self) -> int:
        """The bytes of its files."""
        return sum(file.stat().st_size for file in self.folder.iterdir())


def build_adapters(folder: Path, base: Path, plan: Plan) -> tuple[Built, ...]:
    """Write all versions of `plan` for the base in the folder `base`; a fraction of a second each."""
    description, _ = read_base_folder(base)
    modules = base_modules(description)
    built = []
    for number in range(plan.versions):
        rank = plan.ranks[number % len(plan.ranks)]
        tenant, place = number % plan.tenants, number // plan.tenants
        version = Built(
            number=number,
            tenant=f"tenant-{tenant}",
            adapter=f"adapter-{place // _PER_ADAPTER}",
            version=f"v{place % _PER_ADAPTER + 1}",
            folder=folder / f"version-{number}",
            rank=rank,
        )
        version.folder.mkdir(parents=True)
        workshop = Workshop(version.folder, base, modules, seed=plan.seed * 1000 + number)
        workshop.weights(workshop.lora(rank, strength=_STRENGTH))
        workshop.config(r=rank, lora_alpha=2 * rank)
        built.append(version)
    return tuple(built)
