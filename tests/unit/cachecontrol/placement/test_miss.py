from dataclasses import replace

from cachecontrol.placement.facts import RankCost, Readiness, Wanted
from cachecontrol.placement.miss import MissCandidate, Nowhere, Place, choose_node
from cachecontrol.placement.ranks import RankLoad

WANTED = Wanted(base_digest="b" * 64, rank=16)
NODE = MissCandidate(name="n1", base_digest="b" * 64, max_rank=64, readiness=Readiness.READY, free_places=2)


def choose(*nodes: MissCandidate) -> Place | Nowhere:
    return choose_node(nodes, WANTED)


def test_a_node_with_room_is_taken() -> None:
    assert choose(NODE) == Place("n1")


def test_another_base_too_few_ranks_an_unusable_or_a_cordoned_node_and_none_are_no_place() -> None:
    assert choose(replace(NODE, base_digest="c" * 64)) is Nowhere.NO_NODE
    assert choose(replace(NODE, max_rank=8)) is Nowhere.NO_NODE
    assert choose(replace(NODE, readiness=Readiness.UNUSABLE)) is Nowhere.NO_NODE
    assert choose(replace(NODE, is_cordoned=True)) is Nowhere.NO_NODE
    assert choose() is Nowhere.NO_NODE


def test_room_on_any_node_is_better_than_a_victim() -> None:
    full = replace(NODE, free_places=0, victim_score=-100.0, has_files=True)
    assert choose(full, replace(NODE, name="n2", readiness=Readiness.RECOVERING)) == Place("n2")


def test_a_node_in_order_comes_before_a_tainted_one_and_that_before_one_that_starts() -> None:
    starting = replace(NODE, readiness=Readiness.RECOVERING)
    tainted = replace(NODE, name="n2", readiness=Readiness.TAINTED)
    assert choose(starting, tainted) == Place("n2")
    assert choose(starting, tainted, replace(NODE, name="n3")) == Place("n3")


def test_a_node_at_work_comes_before_an_idle_one_and_both_before_one_that_has_enough_to_do() -> None:
    saturated, idle = replace(NODE, name="n1", busy=1.2), replace(NODE, name="n2")
    assert choose(saturated, idle) == Place("n2")
    assert choose(saturated, idle, replace(NODE, name="n3", busy=0.5)) == Place("n3")


def test_the_node_whose_ranks_suit_comes_before_the_one_that_has_the_files() -> None:
    high = replace(NODE, busy=0.1, rank_load=RankLoad(64, 64, 10.0), has_files=True)
    low = replace(NODE, name="n2", busy=0.1, rank_load=RankLoad(8, 8, 10.0))
    suits = replace(NODE, name="n3", busy=0.1, rank_load=RankLoad(16, 16, 10.0))
    assert choose(high, low, suits) == Place("n3")


def test_without_padding_the_sum_of_ranks_decides() -> None:
    one_high = replace(NODE, rank_load=RankLoad(highest=64, summed=64, rate_per_h=1.0))
    many_low = replace(NODE, name="n2", rank_load=RankLoad(highest=16, summed=160, rate_per_h=1.0))
    assert choose_node([one_high, many_low], WANTED, rank_cost=RankCost.SUMMED) == Place("n1")
    assert choose_node([one_high, many_low], WANTED, rank_cost=RankCost.HIGHEST) == Place("n2")


def test_then_files_then_room_then_the_name_decide() -> None:
    assert choose(replace(NODE, free_places=9), replace(NODE, name="n2", has_files=True)) == Place("n2")
    assert choose(NODE, replace(NODE, name="n2", free_places=9)) == Place("n2")
    assert choose(replace(NODE, name="n3"), replace(NODE, name="n2")) == Place("n2")


def test_without_room_the_node_whose_victim_is_worth_least_gives_it_up() -> None:
    worth_more = replace(NODE, free_places=0, victim_score=2.0)
    worth_less = replace(NODE, name="n2", free_places=-1, victim_score=-1.0)
    assert choose(worth_more, worth_less) == Place("n2", needs_room=True)


def test_nodes_full_of_what_may_not_leave_are_no_capacity() -> None:
    assert choose(replace(NODE, free_places=0)) is Nowhere.NO_CAPACITY


def test_an_engine_that_would_have_to_restart_is_the_last_choice() -> None:
    by_restart = replace(NODE, loads_at_run_time=False, has_files=True)
    assert choose(by_restart, replace(NODE, name="n2", readiness=Readiness.TAINTED)) == Place("n2")
    assert choose(by_restart) == Place("n1")
