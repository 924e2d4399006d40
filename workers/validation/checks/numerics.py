"""Check "numerics": no value that poisons an engine, and an effect at all."""

from collections.abc import Iterator, Mapping
from typing import Final

from registry.base_models.description import BaseDescription
from registry.base_models.safetensors_header import TensorSpan
from workers.validation.kinds import WEIGHTS_FILE
from workers.validation.pairs import Pair, lay_out, true_rank
from workers.validation.report import Check, Grouping, Verdict, finding, several, shown
from workers.validation.settings import Settings, read_settings
from workers.validation.subject import Subject
from workers.validation.weights import FORMATS, Peak

NAME: Final = "numerics"
# Activations are squared in single precision by every norm, so that an update this large overflows behind it.
_OVERFLOWING_UPDATE: Final = 1e18
_VANISHING_UPDATE: Final = 1e-12

Peaks = Mapping[str, Peak]


def check(subject: Subject) -> Iterator[Check]:
    """Judge the peaks that were taken while the file was read."""
    header, peaks = subject.weights.header, subject.weights.peaks
    if header is None or peaks is None:
        return
    faults = Grouping(NAME)
    for span in header.tensors:
        if span.name in peaks:
            _finite(span, peaks[span.name], subject.base, faults)
    yield from faults.checks(Verdict.FAIL)
    if faults.found:
        return
    settings = read_settings(subject.config.content or {})
    yield from _effect(lay_out(header.tensors).pairs, peaks, settings)


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
