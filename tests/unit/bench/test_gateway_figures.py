"""What the gateway's bench says of what it measured."""

import dataclasses
import math

import pytest

from bench.gateway.faults import passed_over
from bench.gateway.figures import CONNECTIONS, DIRECT, OURS, STREAMS, Cell, Check, Figures, Load, checks
from bench.gateway.load import Tally

_MS = 1_000_000
_FAST = Cell(rate=15_000, p50=0.2, p99=0.4, first=5.2, cpu_us=60, served=10)
_LOADS = (*(Load(number) for number in CONNECTIONS), STREAMS)


def _figures(**cells: Cell) -> Figures:
    figures = Figures()
    for arm, cell in ({"direct": Cell(30_000, 0.02, 0.1, 5.0, 0)} | cells).items():
        for load in _LOADS:
            figures.cells[arm.replace("_", "-"), load].append(cell)
    figures.resident_mb[OURS] = 100.0
    figures.recorded = figures.served(OURS)
    return figures


def _short(figures: Figures) -> list[str]:
    return [check.what for check in checks(figures) if not check.is_kept]


def test_a_gateway_as_good_as_promised_keeps_every_promise() -> None:
    assert _short(_figures(lorekeeper=_FAST, vllm_router=dataclasses.replace(_FAST, rate=11_000))) == []


def test_the_rate_must_be_above_the_rivals_by_the_factor() -> None:
    assert _short(_figures(lorekeeper=_FAST, vllm_router=dataclasses.replace(_FAST, rate=12_000))) == ["requests/s"]


@pytest.mark.parametrize(
    ("worse", "what"),
    [
        ({"p50": 0.3}, [f"added p50 at {number}" for number in CONNECTIONS]),
        ({"p99": 0.5}, [f"added p99 at {number}" for number in CONNECTIONS]),
        ({"first": 5.3}, ["added first chunk"]),
        ({"cpu_us": 61.0}, ["CPU us a stream"]),
        ({"errors": 1}, ["errors"]),
        ({"wrong": 1}, ["wrong versions"]),
    ],
)
def test_whatever_is_worse_than_the_rivals_is_short(worse: dict[str, float], what: list[str]) -> None:
    ours = dataclasses.replace(_FAST, **worse)  # type: ignore[arg-type]
    assert _short(_figures(lorekeeper=ours, vllm_router=dataclasses.replace(_FAST, rate=11_000))) == what


def test_memory_has_a_bound_of_its_own() -> None:
    figures = _figures(lorekeeper=_FAST, vllm_router=dataclasses.replace(_FAST, rate=11_000))
    figures.resident_mb[OURS] = 151.0
    assert _short(figures) == ["RSS MB"]


@pytest.mark.parametrize("more", [-1, 1])
def test_every_answer_has_one_record(more: int) -> None:
    figures = _figures(lorekeeper=_FAST, vllm_router=dataclasses.replace(_FAST, rate=11_000))
    figures.recorded += more
    assert _short(figures) == ["answers without a record"]


def test_a_rival_that_fails_is_nothing_to_compare_with() -> None:
    with pytest.raises(ValueError, match="nothing to compare with"):
        checks(_figures(lorekeeper=_FAST, vllm_router=dataclasses.replace(_FAST, errors=1)))


def test_of_each_figure_the_better_of_the_rivals_counts() -> None:
    one, all_ = dataclasses.replace(_FAST, rate=11_000, p50=0.1), dataclasses.replace(_FAST, rate=12_000, cpu_us=50)
    assert _short(_figures(lorekeeper=_FAST, vllm_router=one, vllm_router_all=all_)) == [
        *(f"added p50 at {number}" for number in CONNECTIONS),
        "requests/s",
        "CPU us a stream",
    ]
    broken = dataclasses.replace(all_, errors=1)
    assert "requests/s" not in _short(_figures(lorekeeper=_FAST, vllm_router=one, vllm_router_all=broken))


def test_what_is_added_is_against_the_direct_call_of_the_same_round() -> None:
    figures = Figures()
    for bare, ours in ((0.1, 0.3), (5.0, 5.2), (0.1, 0.9)):
        figures.cells[DIRECT, STREAMS].append(dataclasses.replace(_FAST, p50=bare))
        figures.cells[OURS, STREAMS].append(dataclasses.replace(_FAST, p50=ours))
    assert figures.added(OURS, STREAMS, "p50") == pytest.approx(0.2)


def test_an_arm_that_answered_nothing_took_for_ever() -> None:
    cell = Cell.of(Tally(seconds=1.0, errors={"503": 4}), cpu_s=1.0)
    assert (cell.rate, cell.p50, cell.errors) == (0.0, math.inf, 4)


def test_processor_time_is_for_all_answers_that_were_served() -> None:
    tally = Tally(answers=2, served=4, seconds=2.0, took=[1 * _MS, 3 * _MS], first=[1 * _MS, 2 * _MS])
    cell = Cell.of(tally, cpu_s=0.004)
    assert (cell.cpu_us, cell.rate, cell.p50) == (1000, 1.0, 3.0)


def test_a_check_says_which_side_its_bound_is_on() -> None:
    assert (str(Check("rate", 5, 6, at_least=True)), str(Check("p50", 5, 6))) == (
        "rate 5.00 (>= 6.00) SHORT",
        "p50 5.00 (<= 6.00)",
    )


@pytest.mark.parametrize(
    ("failed_ms", "after_ms"),
    [([], 0), ([10, 300, 700], 700), ([10, 300, 900], 300), ([600], 0)],
)
def test_an_engine_is_passed_over_once_nothing_fails_for_half_a_second(failed_ms: list[int], after_ms: int) -> None:
    began = 7 * _MS
    assert passed_over([began + at * _MS for at in failed_ms], began) == after_ms * _MS
