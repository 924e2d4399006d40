from datetime import timedelta

import pytest

from gateway.errors import NotAuthenticated, TokenExpired
from gateway.routing.authenticate import authenticate
from tests.unit.gateway.worlds import ACME_KEY, EXPIRED_KEY, NOW, OTHER_KEY, acme_world

SNAPSHOT = acme_world().snapshot()


def test_a_known_key_gives_its_tenant() -> None:
    assert authenticate(SNAPSHOT, f"Bearer {ACME_KEY}", now=NOW) == "acme"
    assert authenticate(SNAPSHOT, f"bearer  {OTHER_KEY} ", now=NOW) == "other"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer sk-something",
        f"Basic {ACME_KEY}",
        ACME_KEY,
        f"Bearer {ACME_KEY}x",
        f"Bearer {ACME_KEY[:-1]}é",
        f"Bearer {ACME_KEY[:-1]}z",
        f"Bearer {ACME_KEY} {ACME_KEY}",
        "Bearer " + "x" * 100_000,
    ],
)
def test_anything_else_is_not_authenticated(header: str | None) -> None:
    with pytest.raises(NotAuthenticated):
        authenticate(SNAPSHOT, header, now=NOW)


def test_an_expired_key_is_refused_as_expired() -> None:
    with pytest.raises(TokenExpired):
        authenticate(SNAPSHOT, f"Bearer {EXPIRED_KEY}", now=NOW)


def test_a_key_is_refused_from_the_second_on_in_which_it_expires() -> None:
    assert authenticate(SNAPSHOT, f"Bearer {EXPIRED_KEY}", now=NOW - timedelta(seconds=2)) == "acme"
    with pytest.raises(TokenExpired):
        authenticate(SNAPSHOT, f"Bearer {EXPIRED_KEY}", now=NOW - timedelta(seconds=1))


def test_the_refusal_does_not_repeat_the_key() -> None:
    with pytest.raises(NotAuthenticated) as caught:
        authenticate(SNAPSHOT, "Bearer lk_secret", now=NOW)
    assert "lk_" not in caught.value.message


def test_the_snapshot_does_not_show_digests_when_printed() -> None:
    assert next(iter(SNAPSHOT.tokens)) not in repr(SNAPSHOT)
    assert next(iter(SNAPSHOT.tokens)) not in repr(list(SNAPSHOT.tokens.values()))
