import io
from contextlib import ExitStack
from pathlib import Path

import pytest
from rich.console import Console

from deploy.demo.measure import Measurement
from deploy.demo.run import DemoFailedError, Run, reference
from deploy.demo.show import Screen
from deploy.demo.steps import STEPS, Step, first_line, run_steps


@pytest.fixture
def printed() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def run(tmp_path: Path, printed: io.StringIO) -> Run:
    return Run(tmp_path, Screen(Console(file=printed, width=200, highlight=False)), ExitStack())


def fail(_run: Run) -> None:
    raise DemoFailedError("the answer should be warm\nand more")


def test_all_steps_run_in_their_order(run: Run, printed: io.StringIO) -> None:
    done: list[int] = []
    steps = [Step("One", lambda _run: done.append(1)), Step("Two", lambda _run: done.append(2))]
    assert run_steps(run, steps) is None
    assert done == [1, 2]
    assert printed.getvalue().index("[1/2] One") < printed.getvalue().index("[2/2] Two")


def test_the_first_failing_step_is_named_and_ends_the_run(run: Run) -> None:
    after: list[Run] = []
    failure = run_steps(run, [Step("One", lambda _run: None), Step("Two", fail), Step("Three", after.append)])
    assert failure == "step 2: Two: the answer should be warm"
    assert not after


def test_all_of_a_long_message_is_printed_without_a_traceback(run: Run, printed: io.StringIO) -> None:
    run_steps(run, [Step("One", fail)])
    assert "and more" in printed.getvalue()
    assert "Traceback" not in printed.getvalue()


def test_what_nobody_foresaw_is_named_too_with_its_traceback(run: Run, printed: io.StringIO) -> None:
    def stumble(_run: Run) -> None:
        raise KeyError("missing")

    failure = run_steps(run, [Step("One", stumble)])
    assert failure == "step 1: One: 'missing'"
    assert "Traceback" in printed.getvalue()


def test_ctrl_c_is_not_a_failed_step(run: Run) -> None:
    def stop(_run: Run) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_steps(run, [Step("One", stop)])


def test_an_error_without_words_is_told_by_its_kind() -> None:
    assert first_line(TimeoutError()) == "TimeoutError"


def test_before_the_stack_runs_its_use_is_a_clear_error(run: Run) -> None:
    with pytest.raises(DemoFailedError, match="not running"):
        run.admin()
    with pytest.raises(DemoFailedError, match="no key"):
        run.asks("?", expect_voice="warm")


def test_numbers_are_shown_where_they_were_measured_and_again_at_the_end(run: Run, printed: io.StringIO) -> None:
    run.measured(Measurement("adapter load", 17.0), Measurement("first token, warm", 231.0))
    run.screen.summary(run.measurements)
    assert printed.getvalue().count("adapter load 17 ms") == 2


def test_what_others_wrote_is_never_read_as_markup(run: Run, printed: io.StringIO) -> None:
    run.screen.refused("an [bold]upload[/bold]", "has [/nonsense]")
    run.screen.said("[red]?", "warm", "[/]")
    assert "an [bold]upload[/bold]" in printed.getvalue()
    assert "has [/nonsense]" in printed.getvalue()


def test_a_version_is_named_as_the_command_line_takes_it() -> None:
    version = {"tenant": "acme", "adapter": "support-tone", "name": "2026-07-04.3"}
    assert reference(version) == "acme/support-tone@2026-07-04.3"


def test_the_demo_has_every_part_of_the_main_job() -> None:
    titles = " ".join(step.title for step in STEPS)
    for word in ("training", "pickle", "approve", "v1", "v2", "rollback", "audit"):
        assert word in titles
