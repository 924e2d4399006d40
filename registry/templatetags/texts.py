"""``{% load texts %}``: what people and models wrote, and figures; see ``registry.web.texts``.

``{{ text|plain }}``, ``{{ bytes|size }}``, ``{{ number|figure }}``, ``{{ difference|change }}``.
"""

from collections.abc import Iterable

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from registry.web import texts
from registry.web.differences import Piece

register = template.Library()
register.filter("plain", texts.plain)
register.filter("size", texts.size)
register.filter("figure", texts.figure)
register.filter("change", texts.change)


@register.inclusion_tag("registry/text.html")
def text(value: object) -> dict[str, str]:
    """``{% text comment.text %}``: lines as they are; a long text is cut, and opens as a whole."""
    whole = texts.plain(value)
    return {"whole": whole, "begin": texts.begin_of(whole)}


@register.simple_tag
def answer(lines: Iterable[Iterable[Piece]], is_new: bool = False) -> SafeString:  # noqa: FBT001, FBT002  as a template gives it
    """``{% answer side.lines forloop.last %}``: lines with what differs marked, as new or else as gone."""
    mark = "<ins>{}</ins>" if is_new else "<del>{}</del>"
    pieces = (format_html_join("", "{}", ((_marked(piece, mark),) for piece in line)) for line in lines)
    return format_html('<div class="said answer" dir="auto">{}</div>', mark_safe("\n".join(pieces)))  # noqa: S308  each line is escaped


def _marked(piece: Piece, mark: str) -> SafeString | str:
    text = texts.plain(piece.text)
    return format_html(mark, text) if piece.differs else text
