"""A release and its steps in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.i18n import _

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client.cli.output import Output
    from client.resources.releases import MetricVerdict, Release, ReleaseStep, Rollback

_TENTHS_SAY_NOTHING = 1000


def standing(release: Release) -> str:
    """Return the release with its state and what it waits for, in one line."""
    text = _("{release}: {state}. {sentence}").format(
        release=release, state=state_of(release), sentence=release.sentence
    )
    return text.rstrip()


def state_of(release: Release) -> str:
    """Return the state, and why it is paused if it is."""
    return f"{release.state} ({release.pause_kind})" if release.pause_kind else release.state


def step_of(release: Release) -> str:
    """Return which of how many steps runs or is next."""
    return _("{kind}, {number} of {steps}").format(
        kind=release.step_kind, number=min(release.step + 1, release.steps), steps=release.steps
    )


def print_release(out: Output, release: Release, steps: tuple[ReleaseStep, ...]) -> None:
    """Print what is known of a release: how it stands, its steps, the last verdict, its rollbacks."""
    out.line(standing(release))
    out.fields(_fields(release))
    columns = (_("step"), _("kind"), _("of"), _("state"), _("began"), _("ended"), _("sentence"))
    out.table(columns, (_step_row(step, said=release.sentence) for step in steps))
    judged = [step for step in steps if step.verdict is not None]
    if judged:
        _print_verdict(out, judged[-1])
    for rollback in release.rollbacks:
        out.line(timing_of(rollback))


def timing_of(rollback: Rollback) -> str:
    """Return how long a rollback took, in one line."""
    done = _("Rolled back in {ms:.0f} ms.").format(ms=rollback.commit_ms)
    if rollback.last_answer_ms is not None:
        text = _("The last answer by {left} ended {ms:.0f} ms after the request for it.")
        last = text.format(left=rollback.left, ms=rollback.last_answer_ms)
    elif rollback.settled_at is None:
        last = _("When the last answer by {left} ended isn't known yet.").format(left=rollback.left)
    else:
        last = _("{left} gave no answer after it.").format(left=rollback.left)
    strays = _("Requests that came later and still got it: {count}.").format(count=rollback.strays)
    return " ".join(part for part in (done, last, strays) if part)


def _fields(release: Release) -> Iterator[tuple[str, object]]:
    yield _("stable"), release.stable
    yield _("candidate"), release.candidate
    yield _("step"), step_of(release)
    template = release.template
    yield _("template"), f"{template.name}#{template.number}" if template else None
    yield _("digest"), release.digest
    yield _("revision"), release.revision
    yield (
        _("approvals"),
        _("{given} of {needed}").format(given=release.approvals_given, needed=release.approvals_needed),
    )
    for approval in release.approvals:
        yield (
            "",
            _("{reviewer} at {at}: {comment}").format(
                reviewer=approval.reviewer, at=approval.at, comment=approval.comment or "-"
            ),
        )
    yield _("made"), f"{release.made_by} {release.made_at}"
    yield _("reason"), release.reason or None
    yield _("started"), release.started_at
    yield _("ended"), release.ended_at


def _print_verdict(out: Output, step: ReleaseStep) -> None:
    """Print the verdict's figures; what they come to is the sentence of the step."""
    verdict = step.verdict
    if verdict is None:
        return
    text = _("The judge on step {number} at {at}, by {canary} requests to the candidate and {stable} to stable: {what}")
    facts = {"number": step.index + 1, "at": step.judged_at, "what": verdict.outcome}
    out.line(text.format(canary=verdict.requests.canary, stable=verdict.requests.stable, **facts))
    columns = (_("metric"), _("outcome"), _("canary"), _("stable"), _("difference"), _("surely between"))
    out.table(columns, (_metric_row(metric) for metric in verdict.metrics))


def _step_row(step: ReleaseStep, *, said: str) -> tuple[object, ...]:
    """Return a row of the steps; a sentence that the release says already isn't repeated."""
    sentence = step.sentence if step.sentence != said else None
    where = (step.index + 1, _kind_of(step), _share_of(step))
    return (*where, step.state, step.started_at, step.ended_at, sentence or None)


def _kind_of(step: ReleaseStep) -> str:
    return (
        step.kind if step.attempt <= 1 else _("{kind} (attempt {attempt})").format(kind=step.kind, attempt=step.attempt)
    )


def _share_of(step: ReleaseStep) -> str | None:
    """Whom a live step gives the candidate, or mirrors to it."""
    percent, tenants = step.spec.get("percent"), step.spec.get("tenants")
    parts = [", ".join(map(str, tenants))] if isinstance(tenants, list) and tenants else []
    parts += [f"{percent:g} %"] if isinstance(percent, int | float) and percent else []
    return " + ".join(parts) or None


def _metric_row(metric: MetricVerdict) -> tuple[object, ...]:
    interval = metric.interval
    between = (
        None
        if interval is None
        else _("{low} and {high}").format(low=_number(interval.low), high=_number(interval.high))
    )
    outcome = _("{outcome}, holds").format(outcome=metric.outcome) if metric.holds else metric.outcome
    unit = metric.unit
    return (
        metric.metric,
        outcome,
        _number(metric.canary, unit),
        _number(metric.stable, unit),
        _number(metric.difference),
        between,
    )


def _number(value: float | None, unit: str = "") -> str:
    """Return three digits that count; a bound that isn't there is open."""
    if value is None:
        return "?"
    digits = f"{value:.0f}" if abs(value) >= _TENTHS_SAY_NOTHING else f"{value:.3g}"
    return f"{digits} {unit}".rstrip()
