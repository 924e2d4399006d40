"""Releases on a real vLLM while the applications of two tenants ask: one goes through, one does harm, one is undone."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.release.figures import harm_of
from bench.release.plan import Plan, template_text
from bench.release.relay import Fault
from bench.release.stage import ALIAS_REF, NODE
from bench.release.trials import Case, Trials
from bench.release.world import World, running
from tests.e2e.journey import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]
ROOT = Path(__file__).resolve().parents[2]
PLAN = Plan(minutes=0.05, samples=20, slice_s=2)
HALF = template_text(PLAN, shadow=False, canary=(50,))
CALM_S = 2.0


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    python = Path(os.environ.get("LOREKEEPER_VLLM_PYTHON", ROOT / ".venv-vllm" / "bin" / "python"))
    assert python.exists(), f"{python} does not exist: run make engine"
    template = template_text(PLAN, canary=(0, 50))
    with running(PLAN, ("first", "sound", "failing", "worse", "undone"), template=template) as made:
        yield made
    assert not made.applications.unmarked


def version_of_alias(world: World) -> str:
    with world.stage.person("rui") as rui:
        return str(rui.aliases.get(ALIAS_REF).version)


def revision_of_alias(world: World) -> int:
    with world.stage.person("rui") as rui:
        return rui.aliases.get(ALIAS_REF).revision


def is_warm(world: World, name: str) -> bool:
    with world.stage.admin() as admin:
        found = [each for each in admin.nodes.get(NODE).residencies if each.version == name]
    return any(each.desired == "gpu" for each in found)


def test_a_release_goes_through_all_its_steps_and_fails_no_request(world: World) -> None:
    course, calm = Trials(world).promote("sound")
    print(f"{calm}: {', '.join(map(str, course.stretches))}")

    assert course.state == "promoted", course.sentence
    assert [stretch.name for stretch in course.stretches] == [
        "prewarm", "evaluate", "shadow", "canary by tenant", "canary 50 %", "promote"
    ]  # fmt: skip
    assert {(stretch.state, stretch.attempt) for stretch in course.stretches} == {("passed", 1)}
    assert calm.requests > calm.by_candidate > 0
    assert (calm.failed, calm.taken_back) == (0, 0)
    assert version_of_alias(world) == "sound"
    time.sleep(CALM_S)
    since = [answer for answer in world.applications.answers if answer.began > course.ended + CALM_S]
    assert {answer.version for answer in since} == {"sound"}


@pytest.mark.parametrize("fault", [Fault.FAILING, Fault.WORSE])
def test_a_candidate_that_does_harm_is_rolled_back_by_itself_and_cooled(world: World, fault: Fault) -> None:
    stable = version_of_alias(world)
    case = Case(str(fault), fault, "canary 50 %")

    course, harm = Trials(world).suffer(case, plan_text=HALF)
    print(f"{harm}: {course.sentence}")

    assert course.state == "rolled_back", course.sentence
    assert harm.harmed > 0
    assert (harm.elsewhere, harm.late) == (0, 0)
    assert course.strays <= harm.nearby
    assert version_of_alias(world) == stable
    wait_until(lambda: not is_warm(world, case.version), "the bad version is cooled")
    assert is_warm(world, stable)


def test_a_release_is_undone_by_one_click_and_a_second_one_changes_nothing(world: World) -> None:
    stable, releases = version_of_alias(world), world.releases
    number = releases.begin("undone", plan_text=HALF)
    releases.watch(number, lambda _release: releases.running(number) == "canary 50 %")
    wait_until(lambda: any(answer.version == "undone" for answer in world.applications.answers), "it has its share")

    clicked = time.time()
    releases.roll_back(number)
    revision = revision_of_alias(world)
    releases.roll_back(number)
    time.sleep(CALM_S)
    course = releases.course(number)
    harm = harm_of(
        world.applications.answers,
        onset=clicked,
        ended=course.ended,
        candidate="undone",
        is_harmed=lambda answer: not answer.is_answered,
    )
    print(f"{harm}: {course.commit_ms} ms to the change, {course.last_answer_ms} ms to the last answer")

    assert course.state == "rolled_back"
    assert (harm.harmed, harm.elsewhere, harm.late) == (0, 0, 0)
    # A gateway hears of the change some milliseconds after it.
    assert course.strays <= harm.nearby
    assert (version_of_alias(world), revision_of_alias(world)) == (stable, revision)
