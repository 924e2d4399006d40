"""What an evaluation says in a validation report: checks with verdicts, sentences and evidence. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Final

from registry.evaluation import EvaluationBrief, examples_digest
from workers.evaluation.comparison import EVALUATION, INCOMPLETE
from workers.evaluation.evaluate import Evaluation
from workers.evaluation.gates import Judgement, judge
from workers.evaluation.metrics import Metrics, Result, agreement, divergence, largest_difference, loss, measure, worst
from workers.evaluation.ports import Voice
from workers.validation import Check, Verdict
from workers.validation.report import NOT_CHECKED, JsonValue, finding

EFFECT: Final = "effect"
# In nats. An idle engine repeats itself exactly, and so does the model here; nodes ask for as much.
MIN_EFFECT: Final = 0.005
MAX_SHOWN: Final = 500
_DIGITS: Final = 6


def not_run(reason: str) -> list[Check]:
    """The base was not run: nothing is known, and that is said."""
    return [
        finding(EFFECT, Verdict.WARN, NOT_CHECKED, f"whether the adapter has any effect is not known: {reason}"),
        finding(EVALUATION, Verdict.WARN, NOT_CHECKED, f"the adapter was not evaluated: {reason}"),
    ]


def findings(evaluation: Evaluation, brief: EvaluationBrief) -> list[Check]:
    """The checks `effect` and `evaluation`."""
    return [_effect(evaluation), *_evaluation(evaluation, brief)]


def _effect(evaluation: Evaluation) -> Check:
    if not evaluation.is_finite:
        message = "with this adapter the base gives numbers that are none (NaN or infinite)"
        return Check(EFFECT, Verdict.FAIL, "not_finite", message, dict(evaluation.facts))
    at_probe = largest_difference(evaluation.probe[Voice.CANDIDATE], evaluation.probe[Voice.BASE])
    evidence: dict[str, JsonValue] = {
        **evaluation.facts,
        "largest_difference": round(evaluation.effect, _DIGITS),
        "largest_difference_at_probe": round(at_probe, _DIGITS),
        "least_difference": MIN_EFFECT,
        "reference_digest": evaluation.reference.digest,
    }
    if evaluation.effect < MIN_EFFECT:
        message = (
            f"the adapter has no effect: it reads and answers all like its base, to {evaluation.effect:.6f} nats; "
            "look whether it was trained, and whether its weights were saved"
        )
        return Check(EFFECT, Verdict.FAIL, "no_effect", message, evidence)
    if at_probe < MIN_EFFECT:
        message = "the adapter reads the text that nodes probe with like its base: nodes will refuse to load it"
        return Check(EFFECT, Verdict.WARN, "no_effect_at_probe", message, evidence)
    message = f"the adapter changes what its base says, by up to {evaluation.effect:.3f} nats a token"
    return Check(EFFECT, Verdict.PASS, "ok", message, evidence)


def _evaluation(evaluation: Evaluation, brief: EvaluationBrief) -> Iterator[Check]:
    if not brief.examples:
        reason = "neither the adapter nor its tenant has an evaluation set"
        yield finding(EVALUATION, Verdict.WARN, NOT_CHECKED, f"the adapter was not evaluated: {reason}")
    elif not evaluation.is_finite:
        yield finding(EVALUATION, Verdict.WARN, NOT_CHECKED, "the adapter's answers can't be evaluated")
    elif not evaluation.results:
        message = f"none of the {evaluation.asked} examples was evaluated: {_shortfall(evaluation)}"
        yield finding(EVALUATION, Verdict.WARN, NOT_CHECKED, message)
    else:
        yield from _measured(evaluation, brief)


def _measured(evaluation: Evaluation, brief: EvaluationBrief) -> Iterator[Check]:
    results = evaluation.results
    metrics = {voice: measure(results, voice) for voice in results[0].scores if evaluation.is_sound(voice)}
    is_served = brief.current_version_id is not None
    judgements = judge(brief.gates, metrics[Voice.CANDIDATE], metrics.get(Voice.CURRENT), is_served=is_served)
    broken = [each for each in judgements if not each.is_kept]
    weight = Verdict.FAIL if brief.gates.enforcement == "reject" else Verdict.WARN
    for each in broken:
        verdict = weight if each.value is not None else Verdict.WARN
        yield Check(EVALUATION, verdict, each.gate, _sentence(each, metrics), asdict(each))
    if len(results) < evaluation.asked:
        message = f"only {len(results)} of {evaluation.asked} examples were evaluated: {_shortfall(evaluation)}"
        yield finding(EVALUATION, Verdict.WARN, INCOMPLETE, message)
    yield _summary(evaluation, brief, metrics, judgements)


def _summary(
    evaluation: Evaluation, brief: EvaluationBrief, metrics: Mapping[Voice, Metrics], judgements: tuple[Judgement, ...]
) -> Check:
    hits = metrics[Voice.CANDIDATE].forbidden_hits
    is_judged = "max_forbidden_hits" in brief.gates.closed
    code = "forbidden_answers" if hits and not is_judged else "ok"
    served = None if Voice.CURRENT not in metrics else str(brief.current_version_id)
    evidence: dict[str, JsonValue] = {
        "set": brief.set_name,
        "set_digest": examples_digest(brief.examples),
        "metrics": {voice.value: asdict(found) for voice, found in metrics.items()},
        "gates": [asdict(each) for each in judgements],
        "compared_with": served,
        "worst": [_row(result, evaluation.base_answers, tuple(metrics)) for result in worst(evaluation.results)],
    }
    verdict = Verdict.PASS if code == "ok" else Verdict.WARN
    measured = {"seconds": round(evaluation.seconds, 1)}
    return Check(EVALUATION, verdict, code, _told(metrics, brief.set_name), evidence, measured)


def _told(metrics: Mapping[Voice, Metrics], name: str) -> str:
    """The numbers of the candidate in a sentence, those of the version that is served now beside them."""
    now = metrics.get(Voice.CURRENT)
    parts = []
    for words, field in (
        ("perplexity", "perplexity"),
        ("exact agreement", "exact_agreement"),
        ("token agreement", "token_agreement"),
        ("forbidden answers", "forbidden_hits"),
        ("mean KL", "mean_kl"),
    ):
        value = getattr(metrics[Voice.CANDIDATE], field)
        if value is not None:
            then = getattr(now, field, None)
            beside = "" if then is None else f" (now {then:.4g})"
            parts.append(f"{words} {value:.4g}{beside}")
    return f"on {metrics[Voice.CANDIDATE].examples} examples of {name}: {', '.join(parts)}"


def _sentence(judgement: Judgement, metrics: Mapping[Voice, Metrics]) -> str:
    words = judgement.gate.replace("_", " ")
    is_relative = judgement.gate.endswith(("_increase", "_drop"))
    if judgement.value is None:
        reason = "no example forbids anything" if "forbidden" in judgement.gate else "no example has a reference"
        if is_relative and Voice.CURRENT not in metrics:
            reason = "the version that is served now could not be run beside it"
        return f"the gate “{words} {judgement.bound:g}” can't be judged: {reason}"
    against = " against the version that is served now" if is_relative else ""
    asked = metrics[Voice.CANDIDATE].examples
    return f"the gate “{words} {judgement.bound:g}” is not kept: {judgement.value:.4g}{against}, on {asked} examples"


def _shortfall(evaluation: Evaluation) -> str:
    parts = []
    if evaluation.too_long:
        parts.append(f"{evaluation.too_long} are too long for the base")
    if evaluation.left_out:
        parts.append(f"there was no time for {evaluation.left_out}")
    return ", ".join(parts)


def _row(result: Result, base_answers: Mapping[int, str], voices: Sequence[Voice]) -> dict[str, JsonValue]:
    """One example side by side."""
    sides: dict[str, JsonValue] = {}
    for voice in voices:
        score = result.scores[voice]
        answer = base_answers.get(result.number) if voice is Voice.BASE else result.answers.get(voice)
        sides[voice.value] = {
            "answer": None if answer is None else _shown(answer),
            "is_forbidden": voice in result.forbidden if voice in result.answers else None,
            "loss": round(loss(score), _DIGITS),
            "token_agreement": round(agreement(score), _DIGITS),
            "kl": round(divergence(score), _DIGITS),
        }
    return {
        "number": result.number,
        "prompt": _shown(result.example.prompt),
        "reference": None if result.example.reference is None else _shown(result.example.reference),
        **sides,
    }


def _shown(text: str) -> str:
    """Words of people and models: kept readable, cut short, without what could steer a terminal."""
    cut = text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
    return "".join(char if char.isprintable() or char == "\n" else "�" for char in cut)
