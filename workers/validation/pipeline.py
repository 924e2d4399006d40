"""Runs every check on one upload and gathers what they found into one report."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from registry.base_models.description import BaseDescription
from workers.validation.archive import Unpacked, unpacked
from workers.validation.checks import companions, compatibility, config, cost, engines, files, numerics, structure
from workers.validation.device import Device
from workers.validation.engines.slots import slot_bytes
from workers.validation.kinds import CONFIG_FILE, WEIGHTS_FILE
from workers.validation.limits import DeclaredFile, Limits
from workers.validation.pairs import true_rank
from workers.validation.report import NOT_CHECKED, Check, Facts, FileFact, Report, Verdict, finding, shown
from workers.validation.subject import Subject, read_subject

_MAX_NAMES: Final = 256
CHECKS: Final[tuple[tuple[str, Callable[[Subject], Iterator[Check]], str], ...]] = (
    (files.NAME, files.check, "the files are whole and of allowed kinds"),
    (companions.NAME, companions.check, "nothing rides along that the base would answer otherwise with"),
    (structure.NAME, structure.check, "the weight file is a sound safetensors file"),
    (config.NAME, config.check, "the config is a plain LoRA that engines can serve"),
    (compatibility.NAME, compatibility.check, "every tensor has its place in the base, with its shape and rank"),
    (numerics.NAME, numerics.check, "all weights are finite and have an effect"),
    (engines.NAME, engines.check, "engines can serve it"),
    (cost.NAME, cost.check, "what serving it takes is known"),
)
_OF_WEIGHTS: Final = frozenset({structure.NAME, compatibility.NAME, numerics.NAME, engines.NAME, cost.NAME})
_OF_CONFIG: Final = frozenset({config.NAME, engines.NAME})


def check_folder(
    folder: Path,
    *,
    declared: tuple[DeclaredFile, ...] | None,
    base: BaseDescription,
    limits: Limits,
    base_names: tuple[str, ...] = (),
    base_hints: tuple[str, ...] = (),
    base_folder: Path | None = None,
    device: Device | None = None,
) -> Report:
    """Check the adapter in `folder` against the base it is meant for. The folder may be hostile.

    All checks run as far as the files let them, so that one report shows everything. The weights are read once, by
    chunks; links and devices are never followed or opened.

    Args:
        folder: the upload, with adapter_config.json and adapter_model.safetensors at its top; without a manifest it may
            also be one zip, tar or tar.gz archive of those.
        declared: the manifest, of which the folder must be an exact copy; None for a folder in front of an upload,
            whose unneeded files are named and left out.
        base: the base model revision.
        limits: what this registry takes.
        base_names: names the base is known by (hub ids or bare names); without them the name isn't compared.
        base_hints: names that may be the base's, such as its folder's; see `base_name.compare`.
        base_folder: where the base's own files lie, so that copies of them can be told from changed ones;
            without it they count as changed.
        device: where engines put the weights, so that the way there is timed too.

    Raises:
        NotADirectoryError: `folder` is no folder.
        OSError: a file can't be read, or changed while it was read; trying again can help.

    """
    with unpacked(folder, limits) if declared is None else nullcontext(Unpacked(folder)) as upload:
        subject = read_subject(
            upload,
            declared=declared,
            base=base,
            base_names=base_names,
            base_hints=base_hints,
            base_folder=base_folder,
            limits=limits,
            device=device,
        )
        checks: list[Check] = []
        for name, check, sentence in CHECKS:
            found = list(check(subject))
            checks += found or [_passed(name, sentence, subject)]
    return Report(checks=tuple(checks), facts=_facts(subject, checks))


def _passed(name: str, sentence: str, subject: Subject) -> Check:
    lacks_weights = name in _OF_WEIGHTS and subject.weights.header is None
    lacks_config = name in _OF_CONFIG and subject.config.content is None
    if lacks_weights or lacks_config:
        path = WEIGHTS_FILE if lacks_weights else CONFIG_FILE
        return finding(name, Verdict.WARN, NOT_CHECKED, f"{name} is not checked, as {path} is missing or can't be read")
    return finding(name, Verdict.PASS, "ok", sentence)


def _facts(subject: Subject, checks: Sequence[Check]) -> Facts:
    settings, pairs = subject.settings, subject.layout.pairs
    spans = subject.weights.header.tensors if subject.weights.header else ()
    told = next(check.evidence for check in checks if check.name == engines.NAME)
    ranks = [rank for pair in pairs.values() if (rank := true_rank(pair)) is not None]
    listing, kept = subject.listing, subject.kept
    return Facts(
        rank=max(ranks, default=None),
        declared_rank=settings.rank,
        alpha=settings.alpha,
        target_modules=tuple(sorted({shown(name.rpartition(".")[2]) for name in pairs})[:_MAX_NAMES]),
        module_count=len(pairs),
        dtype="+".join(sorted({span.dtype for span in spans})) or None,
        parameters=sum(span.elements for span in spans),
        base_model=None if settings.base_name is None else shown(settings.base_name),
        files=tuple(
            FileFact(path, listing.files[path], subject.digests[path]) for path in kept if path in subject.digests
        ),
        unused_files=tuple(shown(path) for path in sorted(listing.files) if path not in kept),
        engines=tuple(key for key, row in told.items() if isinstance(row, Mapping) and row["serves"] is True),
        slot_bytes=slot_bytes(subject.layout, subject.modules, subject.base, max_rank=subject.limits.max_rank),
    )
