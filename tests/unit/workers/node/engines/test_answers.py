"""Reading what engines answer: metrics, log-probabilities, lists of models, and the classes of their errors."""

import math
from typing import Any

import httpx
import pytest

from workers.node.engines import texts
from workers.node.engines.connection import object_of, reason_of
from workers.node.engines.model_cards import adapters_in
from workers.node.engines.ports import LoadedAdapter
from workers.node.engines.prometheus import samples, total
from workers.node.engines.readings import echoed_reading, prefilled_reading
from workers.node.errors import (
    EngineAwayError,
    EngineError,
    EngineFailedError,
    EngineFullError,
    EngineRefusedError,
)

PAGE = """\
# HELP queue Requests.
# TYPE queue gauge
queue{engine="0"} 2.0
queue{engine="1",model="a \\"b\\" c"} 3.0
queue_total 9
broken nothing
started 1.79598843964e+09
"""


def test_samples_are_those_of_exactly_this_metric() -> None:
    found = list(samples(PAGE, "queue"))
    assert [sample.value for sample in found] == [2.0, 3.0]
    assert found[1].labels == {"engine": "1", "model": 'a \\"b\\" c'}


@pytest.mark.parametrize(
    ("name", "value"), [("queue", 5.0), ("started", 1795988439.64), ("broken", 0.0), ("absent", 0.0)]
)
def test_the_total_is_over_all_labels_and_nothing_is_zero(name: str, value: float) -> None:
    assert total(PAGE, name) == value


def echoed(values: list[float | None], prompt_tokens: int) -> dict[str, Any]:
    choice = {"logprobs": {"token_logprobs": values}}
    return {"model": "a", "choices": [choice], "usage": {"prompt_tokens": prompt_tokens}}


def test_an_echo_is_read_without_its_first_token_and_without_what_was_generated() -> None:
    assert echoed_reading(echoed([None, -1.0, -2.0, -9.0], 3)).log_probabilities == (-1.0, -2.0)


def test_null_is_no_number() -> None:
    first, second = echoed_reading(echoed([None, None, -2.0], 3)).log_probabilities
    assert math.isnan(first)
    assert second == -2.0


@pytest.mark.parametrize("answer", [{}, {"choices": []}, echoed([None], 1) | {"choices": [{"logprobs": None}]}])
def test_an_echo_without_log_probabilities_is_refused(answer: dict[str, Any]) -> None:
    with pytest.raises(EngineRefusedError, match="no log-probabilities"):
        echoed_reading(answer)


def prefilled(values: list[float | None], said: list[float | None]) -> dict[str, Any]:
    lists = {"prefill": values, "tokens": said}
    return {"details": {name: [{"logprob": value} for value in each] for name, each in lists.items()}}


def test_a_prefill_is_read_without_its_first_token() -> None:
    assert prefilled_reading("a", prefilled([None, -1.0, -2.0], [-3.0])).log_probabilities == (-1.0, -2.0)


def test_poison_is_told_from_an_engine_that_keeps_silent() -> None:
    assert all(map(math.isnan, prefilled_reading("a", prefilled([None, None, None], [None])).log_probabilities))
    with pytest.raises(EngineRefusedError, match="--enable-prefill-logprobs"):
        prefilled_reading("a", prefilled([None, None, None], [-3.0]))
    with pytest.raises(EngineRefusedError, match="--enable-prefill-logprobs"):
        prefilled_reading("a", prefilled([], [-3.0]))


@pytest.mark.parametrize("answer", [{}, {"details": None}, {"details": {"prefill": [{}, {}], "tokens": []}}])
def test_an_answer_without_details_is_refused(answer: dict[str, Any]) -> None:
    with pytest.raises(EngineRefusedError, match="no details"):
        prefilled_reading("a", answer)


def test_adapters_are_the_models_with_a_parent() -> None:
    cards = [{"id": "base", "parent": None}, {"id": "a", "root": "/a", "parent": "base"}, "nonsense"]
    assert adapters_in({"data": cards}) == (LoadedAdapter("a", "/a"),)
    with pytest.raises(EngineAwayError, match="unknown form"):
        adapters_in({"data": "none"})


RULES = (texts.away("dying"), texts.full("no slot"), texts.refused("rank"))


@pytest.mark.parametrize(
    ("status", "text", "error", "error_class"),
    [
        (500, "DYING of rank", EngineAwayError, "transient"),
        (500, "CUDA out of memory", EngineFullError, "capacity"),
        (500, "no slot left", EngineFullError, "capacity"),
        (500, "a rank too high", EngineRefusedError, "refused"),
        (500, "sizes of tensors must match", EngineFailedError, "permanent"),
        (503, "a rank too high", EngineAwayError, "transient"),
        (429, "anything", EngineAwayError, "transient"),
        (400, "anything", EngineRefusedError, "refused"),
    ],
)
def test_an_error_is_classed_by_its_status_and_its_text(
    status: int, text: str, error: type[EngineError], error_class: str
) -> None:
    found = texts.error_of(status, text, RULES)
    assert type(found) is error
    assert found.error_class == error_class


def test_a_reason_is_one_printable_line_from_the_first_place_that_has_one() -> None:
    answer = httpx.Response(400, json={"error": {"message": "no\n\x1b[2Jgood"}, "message": 7})
    assert reason_of(answer, "error_message", "message", "error.message") == "HTTP 400: no [2Jgood"
    assert reason_of(httpx.Response(500, text="Internal  Server\tError"), "error") == "HTTP 500: Internal Server Error"


@pytest.mark.parametrize("text", ["", "not json", "[]", "[" * 100_000])
def test_what_is_no_object_is_an_engine_that_is_not_well(text: str) -> None:
    with pytest.raises(EngineAwayError, match="something else than"):
        object_of(httpx.Response(200, text=text))
