"""Words of cache control in templates: ``{% load tiers %}``."""

from django import template

from cachecontrol.web.words import FACTORS, KINDS, REASONS, word_of

register = template.Library()
_MS_PER_S = 1000
_UNITS = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


@register.filter
def cache_word(value: object) -> str:
    """``{{ residency.observed|cache_word }}``: what people call a tier or a state."""
    return str(word_of(value))


@register.inclusion_tag("ui/components/badge.html")
def cache_badge(state: str) -> dict[str, str]:
    """``{% cache_badge residency.observed %}``: a state of cache control as a badge."""
    return {"kind": KINDS.get(state, "plain"), "word": str(word_of(state))}


@register.filter
def eviction_reason(value: str) -> str:
    """``{{ eviction.reason|eviction_reason }}``: why, as the end of a sentence."""
    return str(REASONS.get(value, value))


@register.filter
def factor_word(value: str) -> str:
    """``{{ name|factor_word }}``: what a factor of a score stands for."""
    return str(FACTORS.get(value, value))


@register.filter
def amount(value: float | None, resource: str) -> str:
    """``{{ used|amount:"cpu_bytes" }}``: slots as a number, bytes as people read them."""
    if value is None:
        return "–"  # noqa: RUF001  a dash for what is not bounded
    return size(value) if resource.endswith("bytes") else f"{value:g}"


@register.filter
def size(value: float) -> str:
    """``{{ node.disk_bytes|size }}``: bytes in the units of cache policies, where 1 GB is 10^9."""
    for unit, bytes_ in _UNITS:
        if value >= bytes_:
            return f"{value / bytes_:.3g} {unit}"
    return f"{value:g} B"


@register.filter
def took(milliseconds: float | None) -> str:
    """``{{ residency.load_ms|took }}``: milliseconds below a second, else seconds."""
    if milliseconds is None:
        return "–"  # noqa: RUF001  a dash for what was not measured
    if milliseconds < _MS_PER_S:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / _MS_PER_S:.1f} s"
