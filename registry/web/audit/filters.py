"""What the log is narrowed to: the form, and the addresses of what it finds."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.services.audit.search import ALLOWED, DENIED, Wanted

_LONGEST: Final = 200


def _moment(label: Any, help_text: Any) -> forms.DateTimeField:  # noqa: ANN401  a text or a promise of one
    return forms.DateTimeField(
        label=label,
        help_text=help_text,
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )


class FiltersForm(forms.Form):
    """Every field narrows; times are in the reader's zone."""

    use_required_attribute = False

    text = forms.CharField(
        label=gettext_lazy("Words"),
        help_text=gettext_lazy("Whole words, anywhere in the record."),
        required=False,
        max_length=_LONGEST,
    )
    who = forms.CharField(
        label=gettext_lazy("Person"), help_text=gettext_lazy("The e-mail address."), required=False, max_length=_LONGEST
    )
    object = forms.CharField(
        label=gettext_lazy("Object"),
        help_text=gettext_lazy("Its name, such as acme/tone@v1, or its id."),
        required=False,
        max_length=_LONGEST,
    )
    action = forms.CharField(
        label=gettext_lazy("Action"),
        help_text=gettext_lazy("A tag, or its beginning: adapter:version."),
        required=False,
        max_length=100,
    )
    outcome = forms.ChoiceField(
        label=gettext_lazy("Outcome"),
        help_text=gettext_lazy("Denied attempts are in the log, too."),
        required=False,
        choices=[
            ("", gettext_lazy("any")),
            (ALLOWED, gettext_lazy("allowed")),
            (DENIED, gettext_lazy("denied")),
        ],
    )
    since = _moment(gettext_lazy("From"), gettext_lazy("In your time zone."))
    until = _moment(gettext_lazy("Until"), gettext_lazy("In your time zone."))
    token = forms.CharField(
        label=gettext_lazy("Token"),
        help_text=gettext_lazy("The letters between lk_ and the next _."),
        required=False,
        max_length=_LONGEST,
    )
    request_id = forms.CharField(
        label=gettext_lazy("Request"),
        help_text=gettext_lazy("Its number, as error pages and logs say it."),
        required=False,
        max_length=_LONGEST,
    )

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        if text and not any(each.isalnum() for each in text):
            raise forms.ValidationError(_("There is no word in it."))
        return text

    def clean_token(self) -> str:
        token: str = self.cleaned_data["token"]
        return token.removeprefix("lk_").partition("_")[0]

    def clean(self) -> dict[str, Any]:
        found = self.cleaned_data
        since, until = found.get("since"), found.get("until")
        if since and until and since >= until:
            self.add_error("until", _("It ends before it begins."))
        return found


def wanted_of(found: Mapping[str, Any]) -> Wanted:
    """What a sound form asks for."""
    return Wanted(**{name: value for name, value in found.items() if value})
