from hypothesis import given, settings
from hypothesis import strategies as some

from cachecontrol.replay.engine_lru import EngineLru


def loaded(*names: str, gpu: int = 2, cpu: int = 4, frees: bool = False) -> EngineLru[str]:
    engine: EngineLru[str] = EngineLru(gpu, cpu, frees_on_unload=frees)
    for name in names:
        engine.load(name)
    return engine


def test_a_load_takes_a_slot_and_the_oldest_falls_back_to_memory() -> None:
    assert loaded("a", "b", "c").tiers() == {"a": "cpu", "b": "gpu", "c": "gpu"}


def test_a_request_says_where_it_found_the_adapter_and_brings_it_into_a_slot() -> None:
    engine = loaded("a", "b", "c")
    assert engine.request("a") == "cpu"
    assert engine.request("a") == "gpu"
    assert engine.tiers() == {"a": "gpu", "b": "cpu", "c": "gpu"}


def test_what_memory_loses_keeps_its_name_and_is_read_again() -> None:
    engine = loaded("a", "b", "c", "d", "e")
    assert engine.tiers()["a"] == "disk"
    assert engine.request("a") == "disk"
    assert engine.request("a") == "gpu"
    assert engine.tiers()["b"] == "disk"


def test_a_name_the_engine_does_not_know_is_found_nowhere() -> None:
    engine = loaded("a")
    assert engine.request("z") is None
    engine.unload("z")
    assert engine.tiers() == {"a": "gpu"}


def test_an_unload_frees_nothing_so_that_a_living_one_is_pushed_out_before_it() -> None:
    engine = loaded("a", "b", "c", "d")
    engine.unload("d")
    engine.load("e")
    assert engine.tiers() == {"a": "disk", "b": "cpu", "c": "cpu", "e": "gpu"}


def test_where_an_unload_frees_memory_nobody_is_pushed_out() -> None:
    engine = loaded("a", "b", "c", "d", frees=True)
    engine.unload("d")
    engine.load("e")
    assert engine.tiers() == {"a": "cpu", "b": "cpu", "c": "gpu", "e": "gpu"}


def test_a_name_loaded_again_is_another_adapter_than_the_one_that_was_forgotten() -> None:
    engine = loaded("a", gpu=1, cpu=2)
    engine.unload("a")
    engine.load("a")
    engine.load("b")
    assert engine.tiers() == {"a": "cpu", "b": "gpu"}
    engine.load("c")
    assert engine.tiers() == {"a": "disk", "b": "cpu", "c": "gpu"}


def test_a_load_of_a_known_name_is_a_use_of_it() -> None:
    engine = loaded("a", "b", "c", "a")
    assert engine.tiers() == {"a": "gpu", "b": "cpu", "c": "gpu"}


commands = some.lists(some.tuples(some.sampled_from(["load", "unload", "request"]), some.sampled_from("abcdef")))


@settings(max_examples=60, deadline=None)
@given(commands, some.integers(1, 3), some.integers(1, 4), some.booleans())
def test_tiers_never_hold_more_than_the_engine_has(
    sent: list[tuple[str, str]], gpu: int, cpu: int, frees: bool
) -> None:
    engine: EngineLru[str] = EngineLru(gpu, cpu, frees_on_unload=frees)
    for command, name in sent:
        known = name in engine.tiers()
        getattr(engine, command)(name)
        tiers = list(engine.tiers().values())
        assert tiers.count("gpu") <= gpu
        assert tiers.count("gpu") + tiers.count("cpu") <= max(gpu, cpu)
        if command == "load" or (command == "request" and known):
            assert engine.tiers()[name] == "gpu"
