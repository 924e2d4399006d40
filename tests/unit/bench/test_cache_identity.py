import math

from bench.cache.identity import TOLERANCE, Voice, Voices, distance

HELLO = Voice(("hel", "lo"), (-0.5, -1.0))
OTHER = Voice(("hel", "p"), (-0.5, -1.5))
VOICES = Voices({"hello": HELLO, "other": OTHER})


def test_an_answer_is_of_the_version_whose_tokens_and_probabilities_it_has() -> None:
    assert VOICES.speaker(HELLO) == "hello"
    assert VOICES.speaker(Voice(HELLO.tokens, (-0.5, -1.0 - TOLERANCE))) == "hello"
    assert VOICES.speaker(OTHER) == "other"


def test_an_answer_that_is_like_none_is_nobodys() -> None:
    assert VOICES.speaker(Voice(("hel", "lo"), (-0.5, -1.0 - 3 * TOLERANCE))) is None
    assert VOICES.speaker(Voice(("hel",), (-0.5,))) is None
    assert VOICES.speaker(Voice((), ())) is None
    assert VOICES.speaker(Voice(("hel", "lo"), (-0.5, math.nan))) is None


def test_another_token_puts_answers_further_apart_than_any_probability() -> None:
    assert distance(HELLO, OTHER) > distance(HELLO, Voice(HELLO.tokens, (-3.0, -3.0)))
    assert VOICES.closest() == distance(HELLO, OTHER)
