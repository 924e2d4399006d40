"""A validation report as a page shows it. Reports come from workers of any age: what one lacks is left out. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from registry.web.differences import Piece, beside

VOICES: Final[tuple[tuple[str, Promise], ...]] = (
    ("base", _("Base model")),
    ("current", _("Serving now")),
    ("candidate", _("This version")),
)
ENGINES: Final = {"vllm": "vLLM", "sglang": "SGLang", "tgi": "TGI", "lorax": "LoRAX"}
_VERDICTS: Final[dict[str, tuple[str, Promise]]] = {
    "pass": ("good", _("passed")),
    "accept": ("good", _("passed")),
    "warn": ("waiting", _("warning")),
    "fail": ("bad", _("failed")),
    "reject": ("bad", _("refused")),
}
_METRICS: Final[tuple[tuple[str, Promise], ...]] = (
    ("perplexity", _("Perplexity of the references")),
    ("exact_agreement", _("Answers equal to the reference")),
    ("token_agreement", _("Tokens as in the reference")),
    ("forbidden_hits", _("Forbidden answers")),
    ("mean_kl", _("Divergence from the base (nats a token)")),
    ("examples", _("Examples")),
)
# Their evidence has a place of its own on the page.
_SHOWN_APART: Final = frozenset({"engines", "evaluation", "cost"})


@dataclass(frozen=True, slots=True)
class Check:
    """A finding; ``evidence`` and ``measured`` are names with texts."""

    name: str
    code: str
    kind: str
    word: Promise | str
    message: str
    evidence: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class EngineRow:
    """What one engine does with the version; ``slot_bytes`` None: nobody knows."""

    key: str
    title: str
    version: str
    serves: bool
    basis: str
    findings: tuple[str, ...]
    slot_bytes: int | None


@dataclass(frozen=True, slots=True)
class Side:
    """What one voice said to an example; ``lines`` are None where it said nothing."""

    title: Promise
    lines: tuple[tuple[Piece, ...], ...] | None
    is_forbidden: bool
    loss: float | None
    agreement: float | None
    kl: float | None


@dataclass(frozen=True, slots=True)
class Worst:
    """An example on which the version does badly, with the voices side by side."""

    number: int
    prompt: str
    reference: str | None
    sides: tuple[Side, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The shadow evaluation: ``metrics`` are rows of a title and a value for each voice of ``voices``."""

    set_name: str
    set_digest: str
    compared_with: str
    voices: tuple[Promise, ...]
    metrics: tuple[tuple[Promise, tuple[float | None, ...]], ...]
    gates: tuple[Mapping[str, Any], ...]
    worst: tuple[Worst, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A whole report; ``kind`` and ``word`` say its verdict."""

    kind: str
    word: Promise | str
    policy_version: str
    checks: tuple[Check, ...]
    facts: Mapping[str, Any]
    engines: tuple[EngineRow, ...]
    cost: Mapping[str, Any]
    load: tuple[tuple[str, str], ...]
    evaluation: Evaluation | None


def shown(report: Mapping[str, Any]) -> Shown:
    """The report for its page."""
    kind, word = verdict(report.get("verdict", ""))
    cost = _check(report, "cost")
    return Shown(
        kind=kind,
        word=word,
        policy_version=str(report.get("policy_version", "")),
        checks=tuple(_checks(report)),
        facts=facts_of(report),
        engines=tuple(_engines(report)),
        cost=cost.get("evidence", {}),
        load=_pairs(cost.get("measured", {}).get("load", {})),
        evaluation=_evaluation(report),
    )


def verdict(name: str) -> tuple[str, Promise | str]:
    """How a verdict is to be read at a glance, and the word for it."""
    return _VERDICTS.get(name, ("plain", name))


def facts_of(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was read from the files."""
    found: Mapping[str, Any] = report.get("facts", {})
    return found


def metrics_of(report: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The evaluation's figures by voice; empty if there was none."""
    found: Mapping[str, Mapping[str, Any]] = _measured(report).get("metrics", {})
    return found


def evaluated_on(report: Mapping[str, Any]) -> str:
    """The digest of the examples that the figures are on."""
    return str(_measured(report).get("set_digest", ""))


def metric_rows(columns: Sequence[Mapping[str, Any]]) -> tuple[tuple[Promise, tuple[float | None, ...]], ...]:
    """A row for each metric that one of the columns has."""
    rows = ((title, tuple(column.get(name) for column in columns)) for name, title in _METRICS)
    return tuple((title, values) for title, values in rows if any(value is not None for value in values))


def _checks(report: Mapping[str, Any]) -> Iterator[Check]:
    for each in report.get("checks", ()):
        kind, word = verdict(each.get("verdict", ""))
        evidence = {} if each.get("name") in _SHOWN_APART else each.get("evidence", {})
        found = _pairs(evidence)
        yield Check(str(each.get("name")), str(each.get("code")), kind, word, str(each.get("message")), found)


def _pairs(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, _text(value)) for name, value in values.items())


def _text(value: Any) -> str:  # noqa: ANN401  any JSON value
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False, indent=2)


def _check(report: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next((each for each in report.get("checks", ()) if each.get("name") == name), {})


def _engines(report: Mapping[str, Any]) -> Iterator[EngineRow]:
    slots = facts_of(report).get("slot_bytes", {})
    found = _check(report, "engines").get("evidence", {})
    for key, title in ENGINES.items():
        if key in found:
            engine = found[key]
            said = tuple(f"{each['sentence']} ({each['sign']})" for each in engine.get("findings", ()))
            version, basis = str(engine.get("version", "")), str(engine.get("basis", ""))
            yield EngineRow(key, title, version, bool(engine.get("serves")), basis, said, slots.get(key))


def _measured(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """The evidence of the evaluation's last word, which has the figures."""
    said = (each.get("evidence", {}) for each in report.get("checks", ()) if each.get("name") == "evaluation")
    return next((each for each in said if "metrics" in each), {})


def _evaluation(report: Mapping[str, Any]) -> Evaluation | None:
    evidence = _measured(report)
    if not evidence:
        return None
    metrics = evidence["metrics"]
    present = [(voice, title) for voice, title in VOICES if voice in metrics]
    return Evaluation(
        set_name=str(evidence.get("set", "")),
        set_digest=str(evidence.get("set_digest", "")),
        compared_with=str(evidence.get("compared_with") or ""),
        voices=tuple(title for _voice, title in present),
        metrics=metric_rows([metrics[voice] for voice, _title in present]),
        gates=tuple(evidence.get("gates", ())),
        worst=tuple(_worst(row) for row in evidence.get("worst", ())),
    )


def _worst(row: Mapping[str, Any]) -> Worst:
    """Marked in the texts of base and the version serving now: what the candidate doesn't say.

    Marked in the candidate's: what it says otherwise than the one serving now, or else than the base.
    """
    answers = {voice: row[voice].get("answer") for voice, _title in VOICES if voice in row}
    candidate = answers.get("candidate")
    beside_what = next((answers[voice] for voice in ("current", "base") if answers.get(voice) is not None), None)
    sides = []
    for voice, title in VOICES:
        if voice in row:
            left, right = (beside_what, candidate) if voice == "candidate" else (answers[voice], candidate)
            lines = _marked(left, right, is_right=voice == "candidate")
            score = row[voice]
            figures = (score.get("loss"), score.get("token_agreement"), score.get("kl"))
            sides.append(Side(title, lines, bool(score.get("is_forbidden")), *figures))
    return Worst(int(row.get("number", 0)), str(row.get("prompt", "")), row.get("reference"), tuple(sides))


def _marked(left: str | None, right: str | None, *, is_right: bool) -> tuple[tuple[Piece, ...], ...] | None:
    """One of two texts in lines, with what the other hasn't marked; None if there is no such text."""
    text = right if is_right else left
    if text is None:
        return None
    if left is None or right is None:
        return tuple((Piece(line),) for line in text.splitlines())
    found = (line.right if is_right else line.left for line in beside(left, right))
    return tuple(line for line in found if line)


def slot_sizes(report: Mapping[str, Any]) -> dict[str, int]:
    """What a slot takes on each engine that is known, in bytes."""
    return dict(facts_of(report).get("slot_bytes", {}))


def verdicts_by_check(report: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The worst verdict of each check with its sentence, in the order of the checks."""
    rank = {"pass": 0, "warn": 1, "fail": 2}
    found: dict[str, tuple[str, str]] = {}
    for each in report.get("checks", ()):
        name, said = str(each.get("name")), (str(each.get("verdict")), str(each.get("message")))
        if name not in found or rank.get(said[0], 0) > rank.get(found[name][0], 0):
            found[name] = said
    return found
