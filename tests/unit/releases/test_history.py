from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from releases.history import Moved, rollback_target, standing_moves
from releases.states import MoveKind

V1, V2, V3, V4 = (UUID(int=number) for number in range(1, 5))


def moves(*versions: UUID, since: int = 1) -> list[Moved]:
    return [Moved(MoveKind.MOVE, version, revision) for revision, version in enumerate(versions, since)]


def back(version: UUID, revision: int = 0) -> Moved:
    return Moved(MoveKind.ROLLBACK, version, revision)


def standing_versions(history: list[Moved]) -> list[UUID]:
    return [move.version_id for move in standing_moves(history)]


def test_a_rollback_goes_to_the_version_before() -> None:
    assert rollback_target(moves(V1, V2), lost=()) == V1


def test_a_second_rollback_goes_further_back_and_not_forward_again() -> None:
    history = [*moves(V1, V2, V3), back(V2)]
    assert rollback_target(history, lost=()) == V1


def test_after_the_first_version_there_is_nothing_left() -> None:
    assert rollback_target(moves(V1), lost=()) is None
    assert rollback_target([*moves(V1, V2), back(V1)], lost=()) is None


def test_a_version_that_was_rolled_back_from_is_not_gone_back_to() -> None:
    history = [*moves(V1, V2), back(V1), *moves(V3)]
    assert rollback_target(history, lost=()) == V1


def test_revoked_versions_are_passed_over() -> None:
    assert rollback_target(moves(V1, V2, V3), lost={V2}) == V1
    assert rollback_target(moves(V1, V2), lost={V1}) is None


def test_it_rolls_back_from_a_revoked_version() -> None:
    assert rollback_target(moves(V1, V2), lost={V2}) == V1


def test_moving_away_and_back_again_does_not_count_as_an_earlier_version() -> None:
    assert rollback_target(moves(V1, V2, V1), lost={V2}) is None
    assert rollback_target(moves(V1, V2, V1), lost=()) == V2


def test_a_rollback_over_a_revoked_version_undoes_that_one_too() -> None:
    history = [*moves(V1, V2, V3), back(V1), *moves(V4)]
    assert standing_versions(history) == [V1, V4]


@given(
    st.lists(st.one_of(st.sampled_from([V1, V2, V3, V4]), st.none()), max_size=30),
    st.sets(st.sampled_from([V1, V2, V3, V4])),
)
def test_rolling_back_until_it_ends_never_comes_to_the_same_place_twice_in_a_row_or_to_a_revoked_one(
    steps: list[UUID | None], revoked: set[UUID]
) -> None:
    history: list[Moved] = moves(V1)
    for step in steps:
        target = step if step is not None else rollback_target(history, lost=revoked)
        current = history[-1].version_id
        if target is None or target == current:
            continue
        if step is None:
            assert target not in revoked
        history.append(Moved(MoveKind.MOVE if step is not None else MoveKind.ROLLBACK, target, len(history) + 1))
        assert standing_versions(history)[-1] == target
    rollbacks = 0
    while (target := rollback_target(history, lost=revoked)) is not None:
        assert target != history[-1].version_id
        before = len(standing_versions(history))
        history.append(back(target))
        assert len(standing_versions(history)) < before
        rollbacks += 1
    assert rollbacks <= len(steps) + 1


def test_a_rollback_that_ended_a_release_before_its_candidate_was_moved_in_undoes_no_move() -> None:
    history = [*moves(V1, V2), back(V2)]
    assert standing_versions(history) == [V1, V2]
    assert rollback_target(history, lost=()) == V1


def test_a_version_that_was_moved_in_twice_stands_by_the_later_move() -> None:
    history = [*moves(V1, V2, V3, V2)]
    assert standing_moves(history)[-1].revision == 4
    assert standing_moves([*history, back(V3, 5)])[-1].revision == 3
    assert standing_moves([*history, back(V3, 5), back(V2, 6)])[-1].revision == 2
