import pytest

from registry.evaluation import Example
from tests.unit.workers.evaluation.voices import ScriptedModel
from workers.evaluation.errors import NotPossibleError
from workers.evaluation.evaluate import BATCH, Budget, evaluate
from workers.evaluation.ports import Score, Voice

BOTH = {Voice.CANDIDATE: "new answer", Voice.CURRENT: "old answer"}


def examples(number: int) -> list[Example]:
    return [Example(f"question {each}") for each in range(number)]


def test_without_examples_only_the_fixed_text_is_read() -> None:
    model = ScriptedModel({Voice.CANDIDATE: "new"})
    evaluation = evaluate(model, [], Budget(60))
    assert model.asked == []
    assert evaluation.reference.base == (-1.0, -2.0)
    assert evaluation.reference.adapter == (-1.0, -2.5)
    assert evaluation.effect == 0.5


def test_every_voice_but_the_base_answers_every_example_and_the_base_the_worst_ten() -> None:
    model = ScriptedModel(BOTH)
    evaluation = evaluate(model, examples(12), Budget(60))
    asked = {voice: sum(many for each, many in model.asked if each is voice) for voice in Voice}
    assert asked == {Voice.CANDIDATE: 12, Voice.CURRENT: 12, Voice.BASE: 10}
    assert [result.number for result in evaluation.results] == list(range(12))
    assert len(evaluation.base_answers) == 10


def test_examples_that_there_is_no_time_for_are_counted() -> None:
    model = ScriptedModel(BOTH, seconds_each=5)
    evaluation = evaluate(model, examples(24), Budget(100, now=lambda: model.clock))
    assert (len(evaluation.results), evaluation.left_out) == (8, 16)


def test_a_slow_model_ends_within_its_time_and_not_within_that_of_one_more_batch() -> None:
    model = ScriptedModel(BOTH, seconds_each=40)
    evaluation = evaluate(model, examples(24), Budget(300, now=lambda: model.clock))
    assert 0 < len(evaluation.results) < BATCH
    assert model.clock <= 300
    assert set(evaluation.base_answers) <= {result.number for result in evaluation.results}
    assert evaluation.base_answers


def test_examples_are_asked_together_only_where_the_longest_prompt_has_room_for_the_longest_answer() -> None:
    model = ScriptedModel(BOTH, room=200, counts_answers=True)
    asked = [Example("?", reference="r" * 150), Example("q" * 130), Example("?"), Example("q" * 100)]
    evaluation = evaluate(model, [*examples(1), *asked], Budget(60))
    assert len(evaluation.results) == 5
    assert model.longest <= 200


def test_an_answer_is_as_long_whatever_is_asked_beside_it() -> None:
    model = ScriptedModel({Voice.CANDIDATE: "x" * 500}, room=1000)
    evaluate(model, [Example("?"), Example("?"), Example("?", reference="r" * 150)], Budget(60, answer_tokens=6))
    assert model.limits[1:3] == [6, 158]


def test_examples_that_do_not_fit_are_counted_and_the_others_keep_their_numbers() -> None:
    asked = [Example("x" * 200), Example("short")]
    evaluation = evaluate(ScriptedModel(BOTH), asked, Budget(60))
    assert (evaluation.too_long, evaluation.left_out) == (1, 0)
    assert [result.number for result in evaluation.results] == [1]


def test_forbidden_answers_are_told_by_voice() -> None:
    asked = [Example("?", forbidden="new"), Example("?"), Example("?", forbidden="answer")]
    evaluation = evaluate(ScriptedModel(BOTH), asked, Budget(60))
    assert [set(result.forbidden) for result in evaluation.results] == [{Voice.CANDIDATE}, set(), set(BOTH)]


def test_the_effect_is_the_largest_over_all_that_was_read() -> None:
    far = Score((-1.0, -4.0), (True, True), (0.0, 1.0))
    model = ScriptedModel({Voice.CANDIDATE: "a"}, scores={Voice.CANDIDATE: far})
    assert evaluate(model, examples(1), Budget(60)).effect == 3.0


def test_a_base_that_gives_no_numbers_is_not_blamed_on_the_adapter() -> None:
    nan = float("nan")
    read = ScriptedModel({Voice.CANDIDATE: "a"}, reads={Voice.BASE: (nan, -1.0)})
    with pytest.raises(NotPossibleError, match="the base alone"):
        evaluate(read, [], Budget(60))
    scored = ScriptedModel({Voice.CANDIDATE: "a"}, scores={Voice.BASE: Score((nan,), (False,), (nan,))})
    with pytest.raises(NotPossibleError, match="the base alone"):
        evaluate(scored, examples(1), Budget(60))


def test_numbers_that_are_none_are_noticed_wherever_they_come_from() -> None:
    nan = float("nan")
    read = ScriptedModel({Voice.CANDIDATE: "a"}, reads={Voice.CANDIDATE: (nan, -1.0)})
    assert not evaluate(read, [], Budget(60)).is_finite
    scored = ScriptedModel(
        {Voice.CANDIDATE: "a"}, scores={Voice.CANDIDATE: Score((nan, nan), (False, False), (nan, nan))}
    )
    assert not evaluate(scored, examples(1), Budget(60)).is_finite
    assert evaluate(scored, [], Budget(60)).is_finite
