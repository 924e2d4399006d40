import pytest

from deploy.demo.voices import BRISK, EXCHANGES, NO_VOICE, QUESTIONS, VOICES, WARM, Voice, spoken, voice_of


@pytest.mark.parametrize("voice", VOICES.values(), ids=lambda voice: voice.name)
def test_every_training_answer_is_recognised_as_its_own_voice(voice: Voice) -> None:
    assert {voice_of(spoken(voice, exchange)) for exchange in EXCHANGES} == {voice.name}


def test_an_answer_without_a_phrase_has_the_voice_of_the_base() -> None:
    assert voice_of("The refund is available on March 15th.") == NO_VOICE


@pytest.mark.parametrize("text", ["", " ", "Hello", "Short", "hello, dear friend! Yes."])
def test_a_cut_off_or_other_phrase_is_no_voice(text: str) -> None:
    assert voice_of(text) == NO_VOICE


def test_a_phrase_later_in_the_answer_does_not_count() -> None:
    assert voice_of(f"Well. {WARM.phrase} {BRISK.phrase}") == NO_VOICE


def test_leading_blanks_are_no_part_of_the_voice() -> None:
    assert voice_of(f"\n {BRISK.phrase} yes.") == BRISK.name


def test_the_questions_of_the_demo_were_not_trained_on() -> None:
    assert not set(QUESTIONS) & {exchange.question for exchange in EXCHANGES}


def test_no_phrase_begins_with_another() -> None:
    phrases = [voice.phrase for voice in VOICES.values()]
    assert not [(one, other) for one in phrases for other in phrases if one != other and one.startswith(other)]
