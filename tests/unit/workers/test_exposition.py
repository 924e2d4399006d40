import pytest

from workers.exposition import parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9101", ("127.0.0.1", 9101)),
        (" 10.0.0.5:9101 ", ("10.0.0.5", 9101)),
        ("[::1]:80", ("::1", 80)),
        ("0.0.0.0:9101", ("0.0.0.0", 9101)),
    ],
)
def test_without_a_host_an_address_is_this_machine_alone(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "metrics", "0", "65536", "here.example:9101", "10.0.0.5:", "1.2.3:9", "-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        parse_address(text)
