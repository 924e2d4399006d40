"""Check "engines": which of vLLM, TGI, SGLang and LoRAX can serve the adapter, and why not the others."""

from collections.abc import Iterator, Mapping
from typing import Final

from workers.validation.engines.table import ENGINES, TABLE, Cell, Engine
from workers.validation.engines.traits import Trait, traits_of
from workers.validation.report import Check, JsonValue, Verdict
from workers.validation.subject import Subject

NAME: Final = "engines"

# For each engine, what it does with the adapter's traits, and what shows each trait.
Findings = Mapping[Engine, tuple[tuple[Trait, Cell, str], ...]]


def check(subject: Subject) -> Iterator[Check]:
    """Look the adapter's traits up in the engine table, if there are a config and a sound weight file."""
    if subject.config.content is None or subject.weights.header is None:
        return
    found = findings(subject)
    verdict = Verdict.PASS if serving(found) else Verdict.FAIL
    code = "servable" if serving(found) else "unservable"
    yield Check(NAME, verdict, code, _sentence(found), {engine.key: _evidence(engine, found) for engine in found})


def findings(subject: Subject) -> Findings:
    """What every engine of the table does with this adapter."""
    traits = traits_of(subject)
    return {engine: tuple(_cells(engine, traits)) for engine in ENGINES}


def _cells(engine: Engine, traits: Mapping[Trait, str]) -> Iterator[tuple[Trait, Cell, str]]:
    for trait, sign in traits.items():
        cell = TABLE[trait].get(engine.key)
        if cell:
            yield trait, cell, sign


def serving(found: Findings) -> tuple[Engine, ...]:
    """The engines that answer as the adapter was trained."""
    return tuple(engine for engine, cells in found.items() if all(cell.effect.is_serving for _, cell, _ in cells))


def _sentence(found: Findings) -> str:
    able = serving(found)
    said = f"{_listed([engine.name for engine in able])} can serve it" if able else "no engine can serve it"
    refusals = [_refusal(engine, found) for engine in found if engine not in able]
    return "; ".join([said, *refusals])


def _refusal(engine: Engine, found: Findings) -> str:
    _, cell, sign = next(row for row in found[engine] if not row[1].effect.is_serving)
    return f"{engine.name} {engine.version} {cell.sentence} ({sign})"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _evidence(engine: Engine, found: Findings) -> JsonValue:
    return {
        "version": engine.version,
        "basis": engine.basis.value,
        "serves": engine in serving(found),
        "findings": [
            {
                "trait": trait.value,
                "effect": cell.effect.value,
                "sentence": cell.sentence,
                "basis": (cell.basis or engine.basis).value,
                "sign": sign,
            }
            for trait, cell, sign in found[engine]
        ],
    }
