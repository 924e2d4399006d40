from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.stores.errors import TicketError, TicketExpired
from registry.stores.tickets import Ticket, read_ticket, write_ticket

SECRET = b"s" * 32
NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)
TICKET = Ticket(
    method="PUT", key="artifacts/acme/aa/" + "a" * 64, expires=int(NOW.timestamp()) + 60, size=5, sha256="a" * 64
)


def _read(text: str, *, method: str = "PUT", now: datetime = NOW, secret: bytes = SECRET) -> Ticket:
    return read_ticket(secret, text, method=method, now=now)


def test_a_ticket_says_what_was_written_into_it() -> None:
    assert _read(write_ticket(SECRET, TICKET)) == TICKET


def test_a_ticket_is_safe_in_a_path() -> None:
    assert set(write_ticket(SECRET, TICKET)) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


def test_a_ticket_ends_with_its_time() -> None:
    with pytest.raises(TicketExpired):
        _read(write_ticket(SECRET, TICKET), now=datetime.fromtimestamp(TICKET.expires, tz=UTC))


def test_a_ticket_is_for_one_method() -> None:
    with pytest.raises(TicketError, match="PUT"):
        _read(write_ticket(SECRET, TICKET), method="GET")


def test_a_ticket_of_another_store_is_refused() -> None:
    with pytest.raises(TicketError):
        _read(write_ticket(b"other", TICKET))


@given(data=st.data())
def test_any_changed_character_is_noticed(data: st.DataObject) -> None:
    text = write_ticket(SECRET, TICKET)
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters().filter(lambda char: char != text[place]))
    with pytest.raises(TicketError):
        _read(text[:place] + other + text[place + 1 :])


@given(st.text(max_size=300))
def test_noise_is_no_ticket(text: str) -> None:
    with pytest.raises(TicketError):
        _read(text)
