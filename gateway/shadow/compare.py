"""How far two answers agree."""

from gateway.shadow.answers import Said


def agreement(stable: Said, candidate: Said) -> float:
    """From 0 to 1: the share of equal leading characters, the mean over the choices.

    Of one choice it is the length of the common beginning over the length of the longer text, so that an answer that
    goes on where the other ends agrees only in part; two empty texts agree. A choice that only one has agrees with
    nothing. Generation is a chain: after the first difference the rest is another answer, and isn't compared.
    """
    count = max(len(stable.texts), len(candidate.texts))
    if not count:
        return 1.0
    pairs = zip(stable.texts, candidate.texts, strict=False)
    return sum(_leading(one, other) for one, other in pairs) / count


def _leading(one: str, other: str) -> float:
    longest = max(len(one), len(other))
    return _equal_beginning(one, other) / longest if longest else 1.0


def _equal_beginning(one: str, other: str) -> int:
    """The length of the common beginning, by halving: texts may be long, and this is done beside live requests."""
    equal, most = 0, min(len(one), len(other))
    while equal < most:
        middle = (equal + most + 1) // 2
        if one[equal:middle] == other[equal:middle]:
            equal = middle
        else:
            most = middle - 1
    return equal
