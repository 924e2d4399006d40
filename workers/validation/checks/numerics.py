"""Check "numerics": no value that poisons an engine, an effect at all, and none that dwarfs the others."""

import math
import statistics
from collections.abc import Iterator, Mapping
from typing import Final

from registry.base_models.description import BaseDescription
from registry.base_models.safetensors_header import TensorSpan
from workers.validation.kinds import WEIGHTS_FILE
from workers.validation.pairs import Pair, true_rank
from workers.validation.report import Check, Grouping, Verdict, finding, several, shown
from workers.validation.settings import Settings
from workers.validation.subject import Subject
from workers.validation.weights import FORMATS, Peak

NAME: Final = "numerics"
# Activations are squared in single precision by every norm, so that an update this large overflows behind it.
_OVERFLOWING_UPDATE: Final = 1e18
_VANISHING_UPDATE: Final = 1e-12
# Modules of sound adapters lie within a factor of ten of their median.
OUTLIER_FACTOR: Final = 30.0
# Weights of trained bases have a root mean square of 0.01 to 0.2, and updates of adapters a fraction of that.
STRONG_UPDATE: Final = 1.0
# A millionth of them, which 16-bit types round away.
_FAINT_UPDATE: Final = 1e-8

Peaks = Mapping[str, Peak]


def check(subject: Subject) -> Iterator[Check]:
    """Judge the peaks that were taken while the file was read."""
    if subject.weights.header is None or subject.weights.peaks is None:
        return
    faults = _not_finite(subject)
    yield from faults.checks(Verdict.FAIL)
    if not faults.found:
        yield from _effect(subject.layout.pairs, subject.weights.peaks, subject.settings)
        yield from _strength(updates(subject))


def _not_finite(subject: Subject) -> Grouping:
    header, peaks, faults = subject.weights.header, subject.weights.peaks or {}, Grouping(NAME)
    for span in header.tensors if header else ():
        if span.name in peaks:
            _finite(span, peaks[span.name], subject.base, faults)
    return faults


def _finite(span: TensorSpan, peak: Peak, base: BaseDescription, faults: Grouping) -> None:
    layout = FORMATS[span.dtype]
    said = f"{WEIGHTS_FILE}: {shown(span.name)} holds"
    advice = "one such value poisons every adapter on an engine; train again or export an earlier checkpoint"
    if peak.nans:
        faults.add("nan", span.name, f"{said} {peak.nans} NaN values, not finite: {advice}")
    elif peak.infinities:
        faults.add("inf", span.name, f"{said} {peak.infinities} infinite values (Inf), not finite: {advice}")
    elif peak.pattern >= layout.bf16_overflow:
        sentence = (
            f"{said} {layout.value(peak.pattern):.3g}, beyond the range of bfloat16, where it is not finite (Inf)"
        )
        faults.add("bf16_range", span.name, f"{sentence}: {advice}")
    elif peak.pattern >= layout.f16_overflow and _is_half(base):
        sentence = (
            f"{said} {layout.value(peak.pattern):.3g}, beyond the range of the base's F16, where it is not finite"
        )
        faults.add("f16_range", span.name, f"{sentence} (Inf): {advice}")


def _is_half(base: BaseDescription) -> bool:
    return any(info.dtype == "F16" for info in base.tensors.values())


def _effect(pairs: Mapping[str, Pair], peaks: Peaks, settings: Settings) -> Iterator[Check]:
    bounds = {name: bound for name, pair in pairs.items() if (bound := _bound(pair, peaks, settings)) is not None}
    silent = sorted(name for name, bound in bounds.items() if bound <= _VANISHING_UPDATE)
    if silent and len(silent) == len(bounds):
        message = (
            f"{WEIGHTS_FILE}: every update is zero (lora_B or lora_A), so that the adapter has no effect: train it"
        )
        yield finding(NAME, Verdict.WARN, "no_effect", message, count=len(silent))
    elif silent:
        message = f"{WEIGHTS_FILE}: the update of {several(silent)} is zero, so that it has no effect there"
        yield finding(NAME, Verdict.WARN, "partly_no_effect", message, count=len(silent), modules=silent)
    huge = sorted(name for name, bound in bounds.items() if bound >= _OVERFLOWING_UPDATE)
    if huge:
        message = (
            f"{WEIGHTS_FILE}: the update of {several(huge)} is so large that answers will not be finite (NaN or Inf): "
            "train again"
        )
        yield finding(NAME, Verdict.FAIL, "overflow", message, count=len(huge), modules=huge)


def _bound(pair: Pair, peaks: Peaks, settings: Settings) -> float | None:
    """No value of scale · B · A is larger than this; None where the pair isn't whole."""
    rank = true_rank(pair)
    if rank is None or pair.a is None or pair.b is None or pair.a.name not in peaks or pair.b.name not in peaks:
        return None
    a, b = (FORMATS[span.dtype].value(peaks[span.name].pattern) for span in (pair.a, pair.b))
    return rank * a * b * abs(settings.scale(rank) or 1.0)


def poisonous(subject: Subject) -> str | None:
    """The first tensor or module whose values are not finite on an engine; None if all are."""
    peaks = subject.weights.peaks or {}
    bad = (name for members in _not_finite(subject).found.values() for name, _ in members)
    huge = (
        name
        for name, pair in subject.layout.pairs.items()
        if (_bound(pair, peaks, subject.settings) or 0.0) >= _OVERFLOWING_UPDATE
    )
    return next(bad, None) or next(huge, None)


def updates(subject: Subject) -> dict[str, float]:
    """How strongly each module is changed: the root mean square of scale · B · A, as if B and A had nothing in common.

    Only modules with whole weights and a place in the base are there.
    """
    peaks = subject.weights.peaks or {}
    found = {}
    for name, pair in subject.layout.pairs.items():
        rank = true_rank(pair)
        if rank is None or pair.a is None or pair.b is None or not {pair.a.name, pair.b.name} <= peaks.keys():
            continue
        norms = _norm(pair.a, peaks) * _norm(pair.b, peaks)
        elements = pair.a.shape[1] * pair.b.shape[0]
        found[name] = abs(subject.settings.scale(rank) or 1.0) * norms / math.sqrt(rank * elements) if elements else 0.0
    return found


def _norm(span: TensorSpan, peaks: Peaks) -> float:
    """The estimated norm, and no less than the largest value, which the sample may have passed over."""
    return max(peaks[span.name].norm, FORMATS[span.dtype].value(peaks[span.name].pattern))


def _strength(found: Mapping[str, float]) -> Iterator[Check]:
    acting = {name: update for name, update in found.items() if update > 0}
    if not acting:
        return
    median = statistics.median(acting.values())
    if all(_VANISHING_UPDATE < update < _FAINT_UPDATE for update in acting.values()):
        message = (
            f"{WEIGHTS_FILE}: the updates are near zero (a norm per value of {max(acting.values()):.3g} at most), so "
            "that 16-bit types round their effect away: train it"
        )
        yield finding(NAME, Verdict.WARN, "faint", message, median=median)
    if median > STRONG_UPDATE:
        message = (
            f"{WEIGHTS_FILE}: the updates are larger than the weights of any base (a norm per value of {median:.3g}), "
            "so that answers will be rubbish; look at the learning rate and at lora_alpha"
        )
        yield finding(NAME, Verdict.WARN, "strong", message, median=median)
    strongest = sorted(acting, key=acting.__getitem__, reverse=True)
    outliers = [name for name in strongest if acting[name] > OUTLIER_FACTOR * median]
    if outliers:
        worst = acting[outliers[0]]
        message = (
            f"{WEIGHTS_FILE}: the update of {several(outliers)} is an outlier: its norm is {worst / median:,.0f} times "
            "the adapter's own median, so that it drowns the others; look at how that layer was trained"
        )
        evidence = {"median": median, "worst": worst, "count": len(outliers)}
        yield finding(NAME, Verdict.WARN, "outlier", message, modules=outliers, **evidence)
