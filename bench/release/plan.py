"""What is measured, in numbers, and the template by which its releases are made."""

from __future__ import annotations

from dataclasses import dataclass

OWNER, PILOT = "acme", "pilot"
ADAPTER, ALIAS, TEMPLATE = "support-tone", "support", "brief"


@dataclass(frozen=True, slots=True)
class Plan:
    """The load, the engine and the faults.

    Attributes:
        rate: requests per second on average, whether or not earlier ones are answered.
        pilot_share: of the requests that come from the tenant that gets the candidate first.
        sessions: users of each tenant; the gateway decides by user.
        tokens: of each answer.
        layers: of the base model; two cores can't answer so often with all its 30.
        marked: share of the answers that their users mark.
        misread: share of the marks that are the wrong way round.
        slow_s: what a slow candidate's answer takes more.
        failing: share of a failing candidate's requests that fail.
        minutes: that each live step takes at least.
        samples: of the candidate that each live step needs.
        slice_s: seconds of a slice of the judge's window.
        seed: of weights, arrivals and faults.

    """

    rate: float = 8.0
    pilot_share: float = 0.25
    sessions: int = 400
    tokens: int = 3
    layers: int = 2
    marked: float = 0.5
    misread: float = 0.03
    slow_s: float = 1.5
    failing: float = 0.3
    minutes: float = 0.2
    samples: int = 30
    slice_s: float = 5.0
    seed: int = 11


def template_text(plan: Plan, *, shadow: bool = True, canary: tuple[float, ...] = (0, 10, 50)) -> str:
    """A release in a few minutes: wide margins and more chance, since certainty takes requests.

    ``canary``: a step for each percent, the pilot's requests are in all of them.
    """
    step = f"min_minutes: {plan.minutes:g}, min_samples: {plan.samples}, longest_minutes: 5"
    mirrored = f"{{percent: 60, {step}, agreement_floor: 0.8}}" if shadow else "null"
    steps = "\n".join(f"  - {{tenants: [{PILOT}], percent: {percent:g}, {step}}}" for percent in canary)
    # Two cores that do all the rest, too, stumble: harm is soon certain there, the absence of it is not.
    times = (
        "is_needed: false, minimum: 30, matters: {absolute: 150, relative: 0.5}, margin: {absolute: 300, relative: 1.5}"
    )
    return f"""\
prewarm: {{longest_minutes: 2}}
shadow: {mirrored}
canary:
{steps}
approvals: 1
keep_stable_warm_minutes: 0.5
judge:
  false_pass: 0.2
  slice_s: {plan.slice_s:g}
  errors: {{matters: {{absolute: 3}}, margin: {{absolute: 8}}, minimum: 30}}
  ttft: {{{times}}}
  total: {{{times}}}
  quality: {{is_needed: true, matters: {{absolute: 10}}, margin: {{absolute: 20}}, minimum: 20}}
  cost: {{matters: {{relative: 0.5}}, margin: {{relative: 1.0}}, minimum: 30}}
"""
