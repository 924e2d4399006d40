from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from cachecontrol.placement import (
    Candidate,
    Nowhere,
    Place,
    Readiness,
    Resident,
    Wanted,
    choose_node,
    choose_victim,
)

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)
WANTED = Wanted(base_digest="b" * 64, rank=16)
IDLE = Resident(
    version_id=UUID(int=1),
    is_settled=True,
    is_broken=False,
    is_alias_target=False,
    last_used_at=NOW - timedelta(hours=1),
)
NODE = Candidate(name="n1", base_digest="b" * 64, max_rank=64, readiness=Readiness.READY, places=2, residents=())


def resident(number: int, *, minutes: float = 60, **facts: bool) -> Resident:
    used = NOW - timedelta(minutes=minutes)
    return replace(IDLE, version_id=UUID(int=number), last_used_at=used, **facts)


def choose(*nodes: Candidate) -> Place | Nowhere:
    return choose_node(nodes, WANTED, now=NOW)


def test_a_node_with_room_is_taken() -> None:
    assert choose(NODE) == Place("n1")


def test_another_base_revision_is_no_place() -> None:
    assert choose(replace(NODE, base_digest="c" * 64)) is Nowhere.NO_NODE


def test_too_few_ranks_are_no_place() -> None:
    assert choose(replace(NODE, max_rank=8)) is Nowhere.NO_NODE


def test_an_unusable_node_is_no_place() -> None:
    assert choose(replace(NODE, readiness=Readiness.UNUSABLE)) is Nowhere.NO_NODE


def test_no_nodes_at_all_are_no_place() -> None:
    assert choose() is Nowhere.NO_NODE


def test_a_node_that_is_not_in_order_is_better_than_none() -> None:
    starting = replace(NODE, readiness=Readiness.RECOVERING)
    tainted = replace(NODE, name="n2", readiness=Readiness.TAINTED)
    assert choose(starting) == Place("n1")
    assert choose(starting, tainted) == Place("n2")
    assert choose(starting, tainted, replace(NODE, name="n3")) == Place("n3")


def test_the_files_being_there_counts_more_than_room() -> None:
    with_files = replace(NODE, name="n2", has_files=True, residents=(resident(1),))
    assert choose(NODE, with_files) == Place("n2")


def test_the_emptiest_node_is_taken_and_then_the_first_by_name() -> None:
    assert choose(replace(NODE, residents=(resident(1),)), replace(NODE, name="n2")) == Place("n2")
    assert choose(replace(NODE, name="n3"), replace(NODE, name="n2")) == Place("n2")


def test_the_least_recently_used_version_makes_room() -> None:
    full = replace(NODE, residents=(resident(1, minutes=5), resident(2, minutes=50)))
    assert choose(full) == Place("n1", victim=UUID(int=2))


def test_the_victim_is_the_least_recently_used_of_all_nodes() -> None:
    one = replace(NODE, residents=(resident(1, minutes=5), resident(2, minutes=6)))
    two = replace(NODE, name="n2", residents=(resident(3, minutes=50), resident(4, minutes=1)))
    assert choose(one, two) == Place("n2", victim=UUID(int=3))


def test_room_elsewhere_is_better_than_a_victim() -> None:
    full = replace(NODE, residents=(resident(1), resident(2)))
    assert choose(full, replace(NODE, name="n2", residents=(resident(3),))) == Place("n2")


def test_what_an_alias_points_to_is_on_its_way_or_in_use_never_leaves() -> None:
    full = replace(NODE, residents=(resident(1, is_alias_target=True), resident(2, is_settled=False)))
    assert choose(full) is Nowhere.NO_CAPACITY
    busy = replace(NODE, residents=(resident(1, minutes=0.1), resident(2, is_alias_target=True)))
    assert choose(busy) is Nowhere.NO_CAPACITY


def test_what_was_never_used_leaves_before_what_was() -> None:
    never = replace(IDLE, version_id=UUID(int=9), last_used_at=None)
    victim = choose_victim(replace(NODE, residents=(resident(1), never)), now=NOW)
    assert victim == never


def test_what_failed_for_good_leaves_first_whatever_points_to_it() -> None:
    broken = resident(3, minutes=0, is_broken=True, is_alias_target=True)
    victim = choose_victim(replace(NODE, residents=(resident(1), broken)), now=NOW)
    assert victim == broken


def test_an_overfull_node_gives_up_one_at_a_time() -> None:
    overfull = replace(NODE, places=1, residents=(resident(1), resident(2, minutes=90)))
    assert choose(overfull) == Place("n1", victim=UUID(int=2))
