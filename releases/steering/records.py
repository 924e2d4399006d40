"""A verdict as it is kept with its step and shown to people: JSON."""

from dataclasses import asdict
from typing import Any

from releases.judge.facts import Window
from releases.judge.verdict import Verdict


def record_of(verdict: Verdict, window: Window) -> dict[str, Any]:
    """``outcome``, ``sentence`` and ``metrics`` (``releases.judge.verdict``), and how much there was to judge by.

    ``requests`` are those of both sides in the window, ``mirrored`` the answers that were compared, ``slices`` how many
    of the window's have any.
    """
    slices = window.slices
    return {
        "outcome": verdict.outcome.value,
        "sentence": verdict.sentence,
        "metrics": [asdict(metric) for metric in verdict.metrics],
        "slices": len(slices),
        "requests": {
            "canary": sum(part.canary.requests for part in slices),
            "stable": sum(part.stable.requests for part in slices),
        },
        "mirrored": sum(part.agreement.count for part in slices),
    }
