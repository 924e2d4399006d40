"""Check "engines": which of vLLM, TGI, SGLang and LoRAX can serve the adapter, and why not the others."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from workers.validation.engines.table import ENGINES, TABLE, Cell, Effect, Engine
from workers.validation.engines.traits import Trait, traits_of
from workers.validation.report import Check, JsonValue, Verdict
from workers.validation.subject import Subject

NAME: Final = "engines"

# What one engine does with one of the adapter's traits, and what shows that trait.
Finding = tuple[Trait, Cell, str]
Findings = Mapping[Engine, tuple[Finding, ...]]


def check(subject: Subject) -> Iterator[Check]:
    """Look the adapter's traits up in the engine table, if there are a config and a sound weight file."""
    if subject.config.content is None or subject.weights.header is None:
        return
    found = findings(subject)
    verdict, code = _judged(found)
    yield Check(NAME, verdict, code, _sentence(found), {engine.key: _evidence(engine, found) for engine in found})


def _judged(found: Findings) -> tuple[Verdict, str]:
    able = serving(found)
    if not able:
        return Verdict.FAIL, "unservable"
    # An adapter that is served well at the cost of whoever asks for the base: a person has to know the engine.
    leaks = any(_is_leak(row) for engine in able for row in found[engine])
    return (Verdict.WARN, "leaks") if leaks else (Verdict.PASS, "servable")


def findings(subject: Subject) -> Findings:
    """What every engine of the table does with this adapter."""
    traits = traits_of(subject)
    return {engine: tuple(_cells(engine, traits)) for engine in ENGINES}


def _cells(engine: Engine, traits: Mapping[Trait, str]) -> Iterator[Finding]:
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
    refusals = [_remark(engine, found, _is_refusal) for engine in found if engine not in able]
    leaks = [_remark(engine, found, _is_leak) for engine in able if any(map(_is_leak, found[engine]))]
    return "; ".join([said, *leaks, *refusals])


def _is_refusal(row: Finding) -> bool:
    return not row[1].effect.is_serving


def _is_leak(row: Finding) -> bool:
    return row[1].effect is Effect.LEAKS


def _remark(engine: Engine, found: Findings, is_meant: Callable[[Finding], bool]) -> str:
    _, cell, sign = next(filter(is_meant, found[engine]))
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
