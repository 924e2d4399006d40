from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from registry.signing.rotation import PublishedKey, choose_key

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NAMES = ("a", "b", "c", "d")

hours = st.integers(-3, 3).map(lambda number: NOW + number * HOUR)
published_keys = st.lists(
    st.builds(PublishedKey, st.sampled_from(NAMES), hours, st.none() | hours, revoked=st.booleans()),
    unique_by=lambda key: key.key_id,
)
configured_keys = st.lists(st.sampled_from(NAMES), unique=True)


def test_the_first_key_of_an_installation_signs_before_it_is_published() -> None:
    assert choose_key(["a", "b"], [], now=NOW) == "a"


def test_a_key_takes_over_when_its_time_comes_and_not_before() -> None:
    keys = [PublishedKey("a", NOW - HOUR, NOW + HOUR / 6), PublishedKey("b", NOW)]
    assert choose_key(["a", "b"], keys, now=NOW - timedelta(seconds=1)) == "a"
    assert choose_key(["a", "b"], keys, now=NOW) == "b"


def test_a_key_that_nobody_knows_does_not_take_over_from_one_that_signs() -> None:
    assert choose_key(["new", "a"], [PublishedKey("a", NOW - HOUR)], now=NOW) == "a"


def test_without_the_coming_key_the_old_one_ends_all_the_same() -> None:
    assert choose_key(["a"], [PublishedKey("a", NOW - HOUR, NOW)], now=NOW) is None


def test_when_the_key_that_signs_is_revoked_the_one_before_signs_if_its_time_is_not_over() -> None:
    keys = [PublishedKey("a", NOW - 2 * HOUR, NOW + HOUR), PublishedKey("b", NOW - HOUR, revoked=True)]
    assert choose_key(["a", "b"], keys, now=NOW) == "a"


@given(configured_keys, published_keys)
def test_only_a_configured_key_that_is_in_its_time_or_unknown_ever_signs(
    configured: list[str], published: list[PublishedKey]
) -> None:
    chosen = choose_key(configured, published, now=NOW)
    known = {key.key_id: key for key in published}
    may = {key for key in configured if key not in known or known[key].signs_at(NOW)}
    assert chosen in may or (chosen is None and not may)
    assert chosen is None or chosen in known or not any(known[key].signs_at(NOW) for key in configured if key in known)
