"""What a person saw when a form was shown: it comes back with the form, so that nothing else is changed by it."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.core import signing
from django.utils.translation import gettext as _

_SALT: Final = "lorekeeper.seen"


class SeenField(forms.CharField):
    """Cleaned, it is the mapping that ``seen`` was given when the form was made."""

    def __init__(self) -> None:
        super().__init__(widget=forms.HiddenInput)

    def clean(self, value: Any) -> dict[str, Any]:  # noqa: ANN401  whatever was sent
        try:
            found: dict[str, Any] = signing.loads(value or "", salt=_SALT)
        except signing.BadSignature:
            raise forms.ValidationError(_("This form is not whole. Load the page again.")) from None
        return found


def seen(facts: Mapping[str, Any]) -> str:
    """The initial value of a ``SeenField``; signed, so that a service can be given what comes back."""
    return signing.dumps(dict(facts), salt=_SALT)
