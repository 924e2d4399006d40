"""The tags and filters of every template; built in, so that none has to load them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django import template
from django.template import Context
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

from registry.permissions import Action
from registry.web.allowing import may
from registry.web.words import KINDS_OF_STATE, word_for

register = template.Library()

_FORMATS: Final = {"time": "H:i", "date": "DATE_FORMAT", "full": "Y-m-d H:i:s"}


@register.simple_tag(takes_context=True)
def can(context: Context, action: str, of: object = None) -> bool:
    """``{% can "approve_version" version as ok %}``: whether the reader may do it; see ``registry.permissions``.

    A button stands inside ``{% if ok %}``, by the same action that its page asks for.
    """
    actor = context.get("actor")
    return actor is not None and may(actor, Action(action), of=of)


@register.simple_tag
def when(moment: datetime | None, style: str = "") -> SafeString | str:
    """``{% when version.created_at %}``: a ``<time>`` in the reader's zone, exact in its title.

    ``style``: ``time`` or ``date`` for less, ``full`` for seconds.
    """
    if moment is None:
        return "–"  # noqa: RUF001  a dash for what never was
    local = timezone.localtime(moment)
    shown = date_format(local, _FORMATS.get(style, "Y-m-d H:i"))
    exact = f"{date_format(local, 'Y-m-d H:i:s')} {local.tzname()}"
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, shown)


@register.inclusion_tag("ui/components/badge.html")
def badge(state: str, word: str = "", kind: str = "") -> dict[str, str]:
    """``{% badge version.state %}``: a state as a word with a sign and a colour.

    ``word`` says it otherwise; ``kind`` is good, bad, busy, waiting or plain where the state alone doesn't tell.
    """
    return {"kind": kind or KINDS_OF_STATE.get(str(state), "plain"), "word": word or str(word_for(state))}


@register.filter
def word(value: object) -> str:
    """``{{ role|word }}``: what people call a role, a scope, a state or a kind."""
    return str(word_for(str(value)))


@register.simple_tag
def button(label: str, href: str, kind: str = "", *, dialog: bool = False) -> SafeString:
    """``{% button label href "danger" dialog=True %}``: a link that looks like a button; ``kind`` primary or danger.

    With ``dialog`` it leads to a page that asks for confirmation, which opens over this one where scripts run.
    """
    opens = format_html(' hx-get="{}" hx-target="#dialog" hx-swap="innerHTML"', href) if dialog else ""
    return format_html('<a class="button {}" href="{}"{}>{}</a>', kind, href, opens, label)


@register.inclusion_tag("ui/components/pages.html")
def pages(rows: Any) -> dict[str, Any]:  # noqa: ANN401  ``registry.web.paging.Rows`` of anything
    """``{% pages rows %}``: links to the pages before and after."""
    return {"rows": rows}


@register.inclusion_tag("ui/components/field.html")
def field(bound: Any) -> dict[str, Any]:  # noqa: ANN401  Django's BoundField
    """``{% field form.name %}``: label, input, help and what is wrong with it, told to screen readers, too."""
    return {"field": bound, "is_choice": _is_choice(bound)}


@register.inclusion_tag("ui/components/fields.html")
def fields(form: Any) -> dict[str, Any]:  # noqa: ANN401  a Django form
    """``{% fields form %}``: what is wrong with all of it, and every field."""
    return {"form": form}


@register.filter
def get(mapping: Mapping[Any, Any], key: object) -> Any:  # noqa: ANN401  whatever the mapping holds
    """``{{ counts|get:name }}``."""
    return mapping.get(key)


def _is_choice(bound: Any) -> bool:  # noqa: ANN401  Django's BoundField
    return getattr(bound.field.widget, "input_type", "") in {"checkbox", "radio"}
