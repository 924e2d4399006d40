"""``make bench-release``: releases on one real vLLM while the applications of two tenants ask all the time.

A sound candidate goes through every step until it is promoted. Others become slow, failing or worse in the middle of
the release, one fails from its first mirrored request on: nobody touches them. Then the button, at several gateways.
The last line says ok or short, and so does the exit status: ok if the first was promoted with no request failed and no
user taken back, if each of the others was rolled back by itself soon enough with no request failed elsewhere, and if
gateways were on the old version within 100 ms (p95). It waits a quarter of an hour, with nobody asking, for what
Lorekeeper's own records say of the rollbacks in the end.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from bench.release import rollbacks
from bench.release.course import Stuck
from bench.release.figures import LATEST_S
from bench.release.plan import PILOT, Plan, template_text
from bench.release.relay import Fault
from bench.release.trials import Case, Trials
from bench.release.world import running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.release.course import Course, Releases
    from bench.release.figures import Calm, Harm
    from bench.release.load import Applications

FIRST, SOUND = "v1", "v2"
CASES = (
    Case("v3", Fault.SLOW, "canary 10 %"),
    Case("v4", Fault.FAILING, "canary 10 %"),
    Case("v5", Fault.WORSE, "canary 10 %"),
    Case("v6", Fault.FAILING, "shadow"),
)
# A window says nothing before its third slice is whole and its records are there.
DETECTED_S = 60.0


@dataclass(slots=True)
class Report:
    """What is said in the last line, and the rollbacks whose times are still to come."""

    told: list[str] = field(default_factory=list)
    rolled_back: dict[Case, Course] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def check(self, is_kept: bool, fault: str) -> None:  # noqa: FBT001  the one thing that is checked
        if not is_kept:
            self.faults.append(fault)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what became of each release and what it cost; 0 if all is as it must be."""
    logging.getLogger("httpx").setLevel(logging.WARNING)
    plan, report, began = _plan(arguments), Report(), time.monotonic()
    versions = (FIRST, SOUND, *(case.version for case in CASES))
    with running(plan, versions, template=template_text(plan)) as world:
        _say_plan(plan)
        trials = Trials(world)
        _promote(trials, report)
        for case in CASES:
            _suffer(trials, case, template_text(plan, shadow=case.step == "shadow", canary=(10, 50)), report)
        _say_marks(world.applications, report)
        world.applications.stop()
        _say_records(world.releases, report)
    _click(report)
    say(
        f"bench-release: {'short' if report.faults else 'ok'} {'; '.join([*report.told, *report.faults])}; "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if report.faults else 0


def _promote(trials: Trials, report: Report) -> None:
    try:
        course, calm = trials.promote(SOUND)
    except Stuck as error:
        report.faults.append(f"the sound candidate: {error}")
        return
    say(f"sound: {_story(course)}")
    say(f"       {_calm(calm)}")
    report.told.append(f"promoted after {course.ended - course.began:.0f} s, {calm.failed} of {calm.requests} failed")
    report.check(course.state == "promoted", f"the sound candidate was {course.state}: {course.sentence}")
    report.check(not calm.failed, f"{calm.failed} requests failed")
    report.check(not calm.taken_back, f"{calm.taken_back} answers by stable to users who had the candidate")
    again = [stretch.name for stretch in course.stretches if stretch.attempt != 1]
    report.check(not again, f"begun more than once: {again}")
    report.check(calm.by_candidate > 0, "the candidate answered nothing")


def _suffer(trials: Trials, case: Case, plan_text: str, report: Report) -> None:
    try:
        course, harm = trials.suffer(case, plan_text=plan_text)
    except Stuck as error:
        report.faults.append(f"{case}: {error}")
        return
    say(f"{case}: {_story(course)}")
    say(f"       {_harm(harm, course)}")
    report.told.append(f"{case}: found after {harm.detect_s:.0f} s, {harm.harmed} of {harm.requests} harmed")
    report.check(course.state == "rolled_back", f"{case} was {course.state}")
    if course.state == "rolled_back":
        report.rolled_back[case] = course
    report.check(harm.detect_s <= DETECTED_S, f"{case} was found after {harm.detect_s:.0f} s (<= {DETECTED_S:.0f})")
    report.check(not harm.elsewhere, f"{case}: {harm.elsewhere} requests to the stable version failed")
    report.check(not harm.late, f"{case}: {harm.late} requests began {LATEST_S * 1000:.0f} ms later and got it still")
    report.check(case.step == "shadow" or harm.harmed > 0, f"{case}: nothing was harmed, so nothing was tried")
    report.check(case.step != "shadow" or not harm.harmed, f"{case}: {harm.harmed} were harmed by a shadow")


def _say_marks(applications: Applications, report: Report) -> None:
    say(f"marks: {applications.marks} taken")
    report.check(applications.marks > 0, "no mark was taken")
    for reason, times in applications.unmarked.items():
        report.faults.append(f"{times} marks were not taken: {reason}")


def _say_records(releases: Releases, report: Report) -> None:
    """The records of rollbacks, which are final a quarter of an hour later."""
    for case, course in report.rolled_back.items():
        try:
            record = releases.settled(course.number)
        except Stuck as error:
            report.faults.append(f"{case}: {error}")
            continue
        last = "was over before" if record.last_answer_ms is None else f"ended after {record.last_answer_ms:.0f} ms"
        say(f"{case}, on record: its last answer {last}, {record.strays} came later and got one")


def _click(report: Report) -> None:
    clicks = rollbacks.measure()
    for line in clicks.lines():
        say(f"button: {line}")
    bound = rollbacks.BOUND_MS
    report.told.append(f"{rollbacks.GATEWAYS} gateways on the old version p95 {clicks.p95_ms:.0f} ms after the click")
    report.check(clicks.p95_ms <= bound, f"p95 after the click above {bound:.0f} ms")
    report.check(not clicks.failed, f"{clicks.failed} requests failed by a click")


def _story(course: Course) -> str:
    steps = ", ".join(str(stretch) for stretch in course.stretches if stretch.name != "promote")
    why = f": {course.sentence}" if course.sentence else ""
    return f"{steps}; {course.state} after {course.ended - course.began:.1f} s{why}"


def _calm(calm: Calm) -> str:
    return (
        f"{calm.requests} requests, {calm.failed} failed, {calm.by_candidate} answered by the candidate, {calm.bad} "
        f"other than before, {calm.taken_back} to users who had had the candidate by stable"
    )


def _harm(harm: Harm, course: Course) -> str:
    commit = "unknown" if course.commit_ms is None else f"{course.commit_ms:.0f} ms"
    return (
        f"found after {harm.detect_s:.1f} s, in which {harm.requests} requests came and {harm.by_candidate} of them "
        f"to the candidate: {harm.harmed} harmed, {harm.elsewhere} failed elsewhere; rolled back in {commit}, "
        f"the last request that got it began {harm.late_ms:.0f} ms after the change"
    )


def _say_plan(plan: Plan) -> None:
    say(
        f"load: {plan.rate:g} streamed requests/s of {plan.tokens} tokens, {plan.pilot_share:.0%} of them from "
        f"{PILOT}, by {plan.sessions} users of each of two tenants who mark {plan.marked:.0%} of the answers (and "
        f"{plan.misread:.0%} of those the wrong way round); seed {plan.seed}"
    )
    say(f"engine: vLLM on the CPU, one sequence at a time, the first {plan.layers} layers of SmolLM2-135M")
    say(
        f"faults: slow by {plan.slow_s * 1000:.0f} ms, {plan.failing:.0%} failing, stuttering; slices of "
        f"{plan.slice_s:g} s, steps of {plan.minutes * 60:.0f} s and {plan.samples} samples at least"
    )


def _plan(arguments: Sequence[str] | None) -> Plan:
    """The plan, with what the command line says of its numbers."""
    parser = argparse.ArgumentParser(prog="python -m bench.release")
    for entry in fields(Plan):
        kind = int if entry.type == "int" else float
        parser.add_argument(f"--{entry.name.replace('_', '-')}", type=kind, default=getattr(Plan(), entry.name))
    return replace(Plan(), **vars(parser.parse_args(arguments)))


def say(line: str) -> None:
    """Print at once: a run takes minutes."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
