"""Forms that several pages share, and how people name versions in them."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.actors import Actor
from registry.models import Version
from registry.selectors import list_versions
from registry.states import VersionState

_OFFERED = 50


class ReasonForm(forms.Form):
    """A change with a reason, made to what the person saw: its ``revision``."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("Kept in the audit log."),
    )
    revision = forms.IntegerField(min_value=0, widget=forms.HiddenInput)


class VersionField(forms.CharField):
    """A version as people write it, ``adapter@version``; the browser offers those that would do."""

    def __init__(self, *, label: Any, help_text: Any = "") -> None:  # noqa: ANN401  texts to translate later
        offers = forms.TextInput(attrs={"list": "offered-versions", "autocomplete": "off", "spellcheck": "false"})
        super().__init__(label=label, help_text=help_text, max_length=200, widget=offers)


def read_version(written: str, *, actor: Actor, tenant: str) -> Version:
    """The tenant's version by ``adapter@version``. Raises ``ValidationError`` where there is none."""
    adapter, _at, name = written.strip().removeprefix(f"{tenant}/").partition("@")
    named = list_versions(actor=actor, tenant=tenant).filter(adapter__name=adapter, name=name)
    found = named.prefetch_related(None).first()
    if found is None:
        raise forms.ValidationError(_("There is no version %(name)s. Write it as adapter@version.") % {"name": written})
    return found


def offered_versions(*, actor: Actor, tenant: str, adapter: str | None, but: Any = None) -> list[str]:  # noqa: ANN401  a key
    """The newest approved versions (of the adapter), as ``read_version`` reads them."""
    near = {"adapter__name": adapter} if adapter else {}
    found = list_versions(actor=actor, tenant=tenant).filter(
        state=VersionState.APPROVED.value, purged_at__isnull=True, **near
    )
    newest = found.prefetch_related(None).exclude(pk=but).order_by("-created_at", "-pk")[:_OFFERED]
    return [f"{version.adapter.name}@{version.name}" for version in newest]
