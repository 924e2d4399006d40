"""Whether the base that an adapter says it was trained on can be the base it is uploaded for, by name alone."""

import re
from enum import StrEnum
from typing import Final

_SPLIT: Final = re.compile(r"[-_\s]+")
_SIZE: Final = re.compile(r"\d+(?:\.\d+)?[mbt]")
_QUANTISED: Final = re.compile(
    r"\d+bit|bnb|unsloth|g?gptq|awq|gguf|ggml|exl2|hqq|aqlm|nf4|fp[48]|int[48]|w\d+a\d+|q\d(?:_\w+)?|dynamic|quantized"
)
_LOCAL_MARKS: Final = ("/", ".", "~", "\\")


class Likeness(StrEnum):
    """Same; a quantised or a sibling variant; a local path that says nothing; certainly another model."""

    SAME = "same"
    QUANTISED = "quantised"
    VARIANT = "variant"
    LOCAL = "local"
    OTHER = "other"


def compare(recorded: str, known: tuple[str, ...]) -> Likeness:
    """Compare the name in adapter_config.json with the names the base is known by.

    Args:
        recorded: a hub id (`org/name`), a bare name or a local path.
        known: hub ids or bare names, at least one.

    """
    words = _words(recorded)
    found = [_likeness(words, _words(name)) for name in known]
    best = min(found, key=list(Likeness).index)
    return Likeness.LOCAL if best is not Likeness.SAME and _is_local(recorded) else best


def _is_local(name: str) -> bool:
    return name.startswith(_LOCAL_MARKS) or name.count("/") > 1 or "\\" in name or name[1:2] == ":"


def _words(name: str) -> tuple[str, ...]:
    last = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    return tuple(word for word in _SPLIT.split(last.casefold()) if word)


def _likeness(recorded: tuple[str, ...], known: tuple[str, ...]) -> Likeness:
    if recorded == known:
        return Likeness.SAME
    sizes = {frozenset(filter(_SIZE.fullmatch, words)) for words in (recorded, known)} - {frozenset()}
    if recorded[:1] != known[:1] or len(sizes) > 1:
        return Likeness.OTHER
    extra = set(recorded) - set(known)
    if set(known) <= set(recorded) and extra and all(map(_QUANTISED.fullmatch, extra)):
        return Likeness.QUANTISED
    return Likeness.VARIANT
