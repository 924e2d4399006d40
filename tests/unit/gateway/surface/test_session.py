import pytest

from gateway.surface.session import session_key


@pytest.mark.parametrize(
    ("headers", "body", "key"),
    [
        ({"x-lorekeeper-session": "s"}, {"user": "u", "prompt_cache_key": "p"}, "s"),
        ({}, {"user": "u", "safety_identifier": "i", "prompt_cache_key": "p"}, "p"),
        ({}, {"user": "u", "safety_identifier": "i"}, "i"),
        ({}, {"user": "u"}, "u"),
        ({}, {}, ""),
        ({"x-lorekeeper-session": ""}, {"user": "u"}, "u"),
        ({"x-lorekeeper-session": "s" * 513}, {"user": "u" * 512}, "u" * 512),
        ({}, {"prompt_cache_key": 7, "safety_identifier": None, "user": "u" * 513}, ""),
    ],
)
def test_the_header_comes_first_and_what_is_no_short_text_is_passed_over(
    headers: dict[str, str], body: dict[str, object], key: str
) -> None:
    assert session_key(headers, body) == key
