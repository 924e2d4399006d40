from dataclasses import replace

import pytest

from registry.reports import ProbeReference
from tests.unit.workers.node.kit import BASE, NAN, MemoryEngine
from workers.node.engines.ports import Reading
from workers.node.errors import (
    EngineAwayError,
    NoEffectError,
    OtherAnswersError,
    OtherBaseError,
    PoisonError,
    ProbeError,
    SickEngineError,
)
from workers.node.probe import ATTEMPTS, Prober


def prober(engine: MemoryEngine) -> Prober:
    return Prober(engine, base_model=BASE, sleep=lambda _: None)


def test_an_adapter_that_differs_passes_with_its_difference() -> None:
    assert prober(MemoryEngine()).probe("lk-a", boot_id="boot-1") == pytest.approx(0.5)


def test_base_and_adapter_are_asked_one_after_the_other() -> None:
    engine = MemoryEngine()
    prober(engine).probe("lk-a", boot_id="boot-1")
    assert engine.calls == [("read", BASE), ("read", BASE), ("read", "lk-a")]


def test_the_base_is_asked_only_once_in_a_life() -> None:
    engine = MemoryEngine()
    probe = prober(engine)
    probe.probe("lk-a", boot_id="boot-1")
    engine.calls.clear()
    probe.probe("lk-b", boot_id="boot-1")
    assert engine.calls == [("read", "lk-b")]


def test_an_adapter_that_reads_like_the_base_fails_after_some_tries() -> None:
    engine = MemoryEngine(reads={"lk-a": (-1.0, -2.0)})
    with pytest.raises(NoEffectError, match="reads like the base"):
        prober(engine).probe("lk-a", boot_id="boot-1")
    assert engine.calls.count(("read", "lk-a")) == ATTEMPTS


def test_a_difference_within_the_noise_of_the_base_fails() -> None:
    class Noisy(MemoryEngine):
        def read_prompt(self, *, model: str, prompt: str) -> Reading:
            reading = super().read_prompt(model=model, prompt=prompt)
            drift = 0.05 * self.calls.count(("read", BASE))
            return replace(reading, log_probabilities=tuple(v - drift for v in reading.log_probabilities))

    with pytest.raises(NoEffectError, match=r"noise is 0\.15"):
        prober(Noisy(reads={"lk-a": (-1.0, -2.0)})).probe("lk-a", boot_id="boot-1")


def test_the_reference_belongs_to_one_life_of_the_engine() -> None:
    engine = MemoryEngine(reads={BASE: (-1.0, -2.0)})
    probe = prober(engine)
    probe.probe("lk-a", boot_id="boot-1")
    engine.reads = {BASE: (-3.0, -4.0), "lk-a": (-3.2, -4.0)}
    assert probe.probe("lk-a", boot_id="boot-2") == pytest.approx(0.2)


def test_numbers_that_are_none_are_poison() -> None:
    with pytest.raises(PoisonError, match="no numbers"):
        prober(MemoryEngine(reads={"lk-a": NAN})).probe("lk-a", boot_id="boot-1")


def test_an_empty_reading_is_poison() -> None:
    with pytest.raises(PoisonError):
        prober(MemoryEngine(reads={"lk-a": ()})).probe("lk-a", boot_id="boot-1")


def test_an_engine_that_was_poisoned_before_is_not_blamed_on_the_adapter() -> None:
    with pytest.raises(SickEngineError) as caught:
        prober(MemoryEngine(reads={BASE: NAN, "lk-a": NAN})).probe("lk-a", boot_id="boot-1")
    assert caught.value.error_class == "transient"


def test_another_model_that_answers_fails() -> None:
    class Liar(MemoryEngine):
        def read_prompt(self, *, model: str, prompt: str) -> Reading:
            reading = super().read_prompt(model=model, prompt=prompt)
            return Reading(BASE, reading.log_probabilities)

    with pytest.raises(ProbeError, match="asked for lk-a, 'base' answered"):
        prober(Liar()).probe("lk-a", boot_id="boot-1")


def test_readings_of_other_lengths_are_not_compared() -> None:
    with pytest.raises(ProbeError, match="tokens"):
        prober(MemoryEngine(reads={"lk-a": (-1.0,)})).probe("lk-a", boot_id="boot-1")


def test_an_engine_that_is_away_is_said_to_be() -> None:
    with pytest.raises(EngineAwayError):
        prober(MemoryEngine(away=True)).probe("lk-a", boot_id="boot-1")


REFERENCE = ProbeReference("a text", base=(-1.0, -2.0), adapter=(-1.5, -2.0))


def test_an_adapter_that_reads_as_where_it_was_validated_passes() -> None:
    engine = MemoryEngine(reads={BASE: (-1.1, -2.1), "lk-a": (-1.6, -2.1)})
    assert prober(engine).probe("lk-a", boot_id="boot-1", reference=REFERENCE) == pytest.approx(0.5)


def test_an_engine_that_reads_the_text_as_other_tokens_has_another_base_and_no_spoilt_slot() -> None:
    reference = ProbeReference("a text", base=(-1.0, -2.0, -3.0), adapter=(-1.5, -2.0, -3.0))
    with pytest.raises(OtherBaseError, match="2 tokens, 3 are expected") as caught:
        prober(MemoryEngine()).probe("lk-a", boot_id="boot-1", reference=reference)
    assert caught.value.error_class == "refused"


def test_an_adapter_that_reads_otherwise_than_where_it_was_validated_fails() -> None:
    engine = MemoryEngine(reads={BASE: (-1.0, -2.0), "lk-a": (-1.5, -2.26)})
    with pytest.raises(OtherAnswersError, match=r"by 0\.130 nats a token, 0\.12 are allowed") as caught:
        prober(engine).probe("lk-a", boot_id="boot-1", reference=REFERENCE)
    assert caught.value.error_class == "permanent"
    assert engine.calls.count(("read", "lk-a")) == ATTEMPTS


def test_one_token_may_be_further_off_than_the_mean() -> None:
    engine = MemoryEngine(reads={BASE: (-1.0, -2.0), "lk-a": (-1.5, -2.2)})
    assert prober(engine).probe("lk-a", boot_id="boot-1", reference=REFERENCE) > 0


def test_an_engine_whose_base_is_another_one_is_blamed_instead_of_the_adapter() -> None:
    engine = MemoryEngine(reads={BASE: (-3.0, -4.0), "lk-a": (-1.5, -2.0)})
    with pytest.raises(OtherBaseError, match="another revision, or runs in another precision") as caught:
        prober(engine).probe("lk-a", boot_id="boot-1", reference=REFERENCE)
    assert caught.value.error_class == "refused"


def test_an_engine_of_less_precision_can_be_given_more_tolerance() -> None:
    engine = MemoryEngine(reads={BASE: (-1.2, -2.2), "lk-a": (-1.8, -2.2)})
    wide = Prober(engine, base_model=BASE, tolerance=0.3, sleep=lambda _: None)
    assert wide.probe("lk-a", boot_id="boot-1", reference=REFERENCE) == pytest.approx(0.6)


def test_an_adapter_that_agrees_with_a_reference_like_the_base_has_no_effect() -> None:
    engine = MemoryEngine(reads={BASE: (-1.0, -2.0), "lk-a": (-1.0, -2.0)})
    with pytest.raises(NoEffectError):
        prober(engine).probe("lk-a", boot_id="boot-1", reference=replace(REFERENCE, adapter=(-1.0, -2.0)))


def test_the_base_is_read_again_for_another_text() -> None:
    engine = MemoryEngine(reads={BASE: (-1.0, -2.0), "lk-a": (-1.5, -2.0)})
    probe = prober(engine)
    probe.probe("lk-a", boot_id="boot-1")
    probe.probe("lk-a", boot_id="boot-1", reference=REFERENCE)
    assert engine.calls.count(("read", BASE)) == 4


def test_an_engine_that_cuts_the_text_otherwise_is_not_compared() -> None:
    engine = MemoryEngine(reads={BASE: (-1.0,), "lk-a": (-1.5,)})
    with pytest.raises(ProbeError, match="tokens"):
        prober(engine).probe("lk-a", boot_id="boot-1", reference=REFERENCE)


class Jumpy(MemoryEngine):
    """Its base reads otherwise the first times that it is asked, as beside another request in its batch."""

    first: tuple[tuple[float, ...], ...] = ()

    def read_prompt(self, *, model: str, prompt: str) -> Reading:
        reading = super().read_prompt(model=model, prompt=prompt)
        turn = self.calls.count(("read", BASE)) - 1
        is_early = model == BASE and turn < len(self.first)
        return replace(reading, log_probabilities=self.first[turn]) if is_early else reading


def test_a_base_that_was_read_beside_another_request_is_not_kept_for_good() -> None:
    engine = Jumpy(reads={BASE: (-1.0, -2.0), "lk-a": (-1.5, -2.0)})
    engine.first = ((-3.0, -2.0), (-3.0, -2.0))
    assert prober(engine).probe("lk-a", boot_id="boot-1", reference=REFERENCE) == pytest.approx(0.5)


def test_one_noisy_reading_of_the_base_does_not_make_adapters_look_like_it() -> None:
    engine = Jumpy(reads={BASE: (-1.0, -2.0), "lk-a": (-1.1, -2.0)})
    engine.first = ((-1.4, -2.0),)
    probe = prober(engine)
    assert probe.probe("lk-a", boot_id="boot-1") == pytest.approx(0.1)
    engine.calls.clear()
    assert probe.probe("lk-a", boot_id="boot-1") == pytest.approx(0.1)
    assert engine.calls == [("read", "lk-a")]
