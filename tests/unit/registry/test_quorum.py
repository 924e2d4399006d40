from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from registry.quorum import Case, Rules, Subject, Void, Word, judge, stands, void_reason
from registry.states import Role

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)
NOW_IS = Subject(files="f", report="r2", base="b")
REVIEWER = frozenset({Role.REVIEWER})
UPLOADER = "ana"


def word(person: str, **facts: object) -> Word:
    known = {"roles": REVIEWER, "subject": NOW_IS, "at": NOW - timedelta(days=1), **facts}
    return Word(person=person, **known)  # type: ignore[arg-type]


def case(*words: Word) -> Case:
    return Case(subject=NOW_IS, uploader=UPLOADER, words=words)


def is_met(rules: Rules, *words: Word) -> bool:
    return judge(rules, case(*words), now=NOW).met


def test_it_takes_as_many_different_people_as_the_policy_says() -> None:
    rules = Rules(required=2)
    assert not is_met(rules, word("ben"))
    assert not is_met(rules, word("ben"), word("ben"))
    assert is_met(rules, word("ben"), word("cora"))


def test_the_uploader_never_counts_not_even_with_broken_glass() -> None:
    assert not is_met(Rules(), word(UPLOADER))
    assert not is_met(Rules(), word(UPLOADER, break_glass=True))


def test_an_approval_of_other_digests_is_void() -> None:
    for changed in (replace(NOW_IS, files="x"), replace(NOW_IS, report="r1"), replace(NOW_IS, base="x")):
        said = word("ben", subject=changed)
        assert void_reason(Rules(), case(said), said, now=NOW) is Void.CHANGED
        assert not is_met(Rules(), said)
        assert not is_met(Rules(), replace(said, break_glass=True))


def test_an_approval_counts_until_it_is_too_old() -> None:
    rules = Rules(validity=timedelta(days=7))
    assert is_met(rules, word("ben", at=NOW - timedelta(days=7) + timedelta(seconds=1)))
    too_old = word("ben", at=NOW - timedelta(days=7))
    assert void_reason(rules, case(too_old), too_old, now=NOW) is Void.EXPIRED
    assert is_met(rules, too_old, word("ben"))


def test_only_those_whom_the_policy_lets_approve_count() -> None:
    manager = word("mia", roles=frozenset({Role.RELEASE_MANAGER}))
    assert not is_met(Rules(), manager)
    assert is_met(Rules(roles=frozenset({Role.RELEASE_MANAGER})), manager)
    assert not is_met(Rules(only_people=frozenset({"cora"})), word("ben"))
    assert is_met(Rules(only_people=frozenset({"cora"})), word("cora"))


def test_who_has_lost_the_role_or_left_counts_no_more() -> None:
    assert not is_met(Rules(), word("ben", roles=frozenset()))


def test_people_required_by_name_have_to_be_among_them() -> None:
    rules = Rules(required=2, required_people=frozenset({"cora"}))
    standing = judge(rules, case(word("ben"), word("dan")), now=NOW)
    assert (standing.met, standing.missing_people) == (False, frozenset({"cora"}))
    assert is_met(rules, word("ben"), word("cora"))
    assert not is_met(rules, word("cora"))


def test_broken_glass_stands_in_for_all_others() -> None:
    admin = word("root", roles=frozenset(), break_glass=True)
    assert is_met(Rules(required=3, required_people=frozenset({"cora"})), admin)
    assert is_met(Rules(required=3), word("root"), admin)


people = st.sampled_from(["ana", "ben", "cora", "dan"])
subjects = st.sampled_from([NOW_IS, NOW_IS, replace(NOW_IS, report="r1")])
words = st.builds(
    Word,
    person=people,
    roles=st.frozensets(st.sampled_from(Role), max_size=2),
    subject=subjects,
    at=st.integers(0, 20).map(lambda days: NOW - timedelta(days=days)),
    break_glass=st.sampled_from([False, False, False, True]),
)
rules_ = st.builds(
    Rules,
    required=st.integers(1, 3),
    roles=st.frozensets(st.sampled_from(Role), min_size=1),
    only_people=st.frozensets(people, max_size=3),
    required_people=st.frozensets(people, max_size=2),
    validity=st.none() | st.integers(1, 20).map(lambda days: timedelta(days=days)),
)


@given(rules_, st.lists(words, max_size=6), words)
def test_another_approval_never_takes_away_and_none_of_the_uploader_or_of_other_digests_counts(
    rules: Rules, said: list[Word], more: Word
) -> None:
    before, after = (judge(rules, case(*given_), now=NOW) for given_ in (said, [*said, more]))
    assert after.met or not before.met
    assert len(after.counted) >= len(before.counted)
    for counted in after.counted:
        assert counted.person != UPLOADER
        assert counted.subject == NOW_IS
    assert len({counted.person for counted in after.counted}) == len(after.counted)


@given(rules_, st.lists(words, max_size=6))
def test_the_order_in_which_approvals_are_read_does_not_matter(rules: Rules, said: list[Word]) -> None:
    forward, backward = (judge(rules, case(*order), now=NOW) for order in (said, said[::-1]))
    assert (forward.met, forward.missing_people) == (backward.met, backward.missing_people)
    assert {counted.person for counted in forward.counted} == {counted.person for counted in backward.counted}
    assert all(stands(rules, case(*said), person=counted.person, now=NOW) for counted in forward.counted)
