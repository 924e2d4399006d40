"""The settings of adapter_config.json that say where the weights go and how strongly; wrong values count as unset."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Settings:
    """`targets` is a list of module names or one regular expression; None where the setting is no use."""

    rank: int | None = None
    alpha: float | None = None
    uses_rslora: bool = False
    targets: tuple[str, ...] | str | None = None
    excluded: tuple[str, ...] | str | None = None
    rank_pattern: Mapping[str, int] = field(default_factory=dict)
    alpha_pattern: Mapping[str, float] = field(default_factory=dict)
    layers: tuple[int, ...] | None = None
    layers_patterns: tuple[str, ...] = ()
    base_name: str | None = None
    base_revision: str | None = None

    def scale(self, rank: int, alpha: float | None = None) -> float | None:
        """The factor on B·A for a module of `rank`: alpha over rank, or over its square root with rsLoRA."""
        chosen = self.alpha if alpha is None else alpha
        return None if chosen is None else chosen / (math.sqrt(rank) if self.uses_rslora else rank)


def read_settings(content: Mapping[str, object]) -> Settings:
    """Take from the config what is of the right type; what isn't is the config check's matter."""
    return Settings(
        rank=rank_value(content.get("r")),
        alpha=finite_number(content.get("lora_alpha")),
        uses_rslora=content.get("use_rslora") is True,
        targets=names_or_pattern(content.get("target_modules")),
        excluded=names_or_pattern(content.get("exclude_modules")),
        rank_pattern=_values(content.get("rank_pattern"), rank_value),
        alpha_pattern=_values(content.get("alpha_pattern"), finite_number),
        layers=layer_numbers(content.get("layers_to_transform")),
        layers_patterns=_as_names(names_or_pattern(content.get("layers_pattern"))),
        base_name=_text(content.get("base_model_name_or_path")),
        base_revision=_text(content.get("revision")),
    )


def rank_value(value: object) -> int | None:
    """A rank: a whole number from 1 that a program can count with."""
    return value if type(value) is int and 0 < value < 1 << 31 else None


def finite_number(value: object) -> float | None:
    """A number that fits into a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def names_or_pattern(value: object) -> tuple[str, ...] | str | None:
    """A non-empty list of module names, or a non-empty text."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, list) and value and all(isinstance(item, str) and item for item in value):
        return tuple(value)
    return None


def layer_numbers(value: object) -> tuple[int, ...] | None:
    """Layer numbers given as one number or as a list; an empty list restricts nothing."""
    listed = value if isinstance(value, list) else [value]
    if listed and all(type(item) is int and item >= 0 for item in listed):
        return tuple(listed)
    return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _as_names(value: tuple[str, ...] | str | None) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value or ()


def _values(value: object, read: Callable[[object], Number | None]) -> dict[str, Number]:
    if not isinstance(value, dict):
        return {}
    pairs = ((key, read(item)) for key, item in value.items())
    return {key: number for key, number in pairs if number is not None}
