import pytest

from gateway.shadow.answers import Said
from gateway.shadow.compare import agreement


@pytest.mark.parametrize(
    ("stable", "candidate", "share"),
    [
        (("abcd",), ("abcd",), 1.0),
        (("abcd",), ("abXX",), 0.5),
        (("abcd",), ("abcdefgh",), 0.5),
        (("abcd",), ("Xbcd",), 0.0),
        (("abcd",), ("",), 0.0),
        (("",), ("",), 1.0),
        ((), (), 1.0),
        (("ab", "cd"), ("ab",), 0.5),
        (("ab", "cd"), ("ab", "cX"), 0.75),
        (("x" * 100_000 + "a",), ("x" * 100_000 + "b",), 100_000 / 100_001),
    ],
)
def test_the_share_of_equal_leading_characters(
    stable: tuple[str, ...], candidate: tuple[str, ...], share: float
) -> None:
    assert agreement(Said(stable), Said(candidate)) == pytest.approx(share)
    assert agreement(Said(candidate), Said(stable)) == pytest.approx(share)
