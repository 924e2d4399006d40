"""Whether the base that an adapter says it was trained on can be the base it is uploaded for, by name alone."""

import re
from enum import StrEnum
from typing import Final

_SPLIT: Final = re.compile(r"[-_\s]+")
_SIZE: Final = re.compile(r"\d+(?:\.\d+)?[mbt]")
_QUANTISED: Final = re.compile(
    r"\d+bit|bnb|unsloth|g?gptq|awq|gguf|ggml|exl2|hqq|aqlm|(?:nv|mx)?fp[48]|nf4|b?fp?16|int[48]|w\d+a\d+|"
    r"q\d(?:_\w+)?|i?q\d\w*|[\d.]+bpw|dynamic|quantized(?:\.\w+)?|onnx|mlx|openvino|torchao|marlin|autoround|imatrix"
)
# Words that tell a model which follows instructions from the one it was made of.
_TUNED: Final = frozenset({"chat", "instruct", "it"})
_LOCAL_MARKS: Final = ("/", ".", "~", "\\")


class Likeness(StrEnum):
    """Same; a quantised or a sibling variant; a local path that says nothing; certainly another model."""

    SAME = "same"
    QUANTISED = "quantised"
    VARIANT = "variant"
    LOCAL = "local"
    OTHER = "other"


def compare(recorded: str, known: tuple[str, ...], hints: tuple[str, ...] = ()) -> Likeness:
    """Compare the name in adapter_config.json with what is known of the base.

    Args:
        recorded: a hub id (`org/name`), a bare name or a local path.
        known: hub ids or bare names that the base surely has.
        hints: names that may be the base's, such as its folder's; looked at where no name is known, and believed only
            where they tell two models of one family or two sizes apart.

    """
    words = _words(recorded)
    found = [_likeness(words, _words(name)) for name in known] or [_hinted(words, _words(name)) for name in hints]
    best = (
        min(found, key=list(Likeness).index) if known else max(found, key=list(Likeness).index, default=_alone(words))
    )
    is_named = bool(known) and best is Likeness.SAME
    is_known_path = not known and any(words == _words(name) for name in hints)
    return Likeness.LOCAL if not (is_named or is_known_path) and _is_local(recorded) else best


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


def _alone(recorded: tuple[str, ...]) -> Likeness:
    """What a name tells by itself."""
    return Likeness.QUANTISED if any(map(_QUANTISED.fullmatch, recorded)) else Likeness.SAME


def _hinted(recorded: tuple[str, ...], hint: tuple[str, ...]) -> Likeness:
    sizes = [frozenset(filter(_SIZE.fullmatch, words)) for words in (recorded, hint)]
    family, other = (words[0] if words else "" for words in (recorded, hint))
    is_sibling = family != other and _stem(family) == _stem(other) != ""
    if is_sibling or (all(sizes) and sizes[0] != sizes[1]):
        return Likeness.OTHER
    if sizes[1] and family != other:
        # A name with a size is a model's, but a merged or renamed model may still carry its parent's.
        return Likeness.VARIANT
    if sizes[1] and not _TUNED.isdisjoint(hint):
        return _likeness(recorded, hint)
    return Likeness.SAME if any(map(_QUANTISED.fullmatch, hint)) else _alone(recorded)


def _stem(word: str) -> str:
    """The family without its generation: `smollm` of `smollm2`, `qwen` of `qwen2.5`."""
    return word.rstrip("0123456789.")
