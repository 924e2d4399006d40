"""What lists of adapters and versions can be narrowed to."""

from collections.abc import Iterable
from typing import Any, Final

from django import forms
from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _

from registry.errors import InvalidInput
from registry.lineage import Bound, read_bounds
from registry.states import VersionState
from registry.web.words import word_for

_ANY: Final = ("", _("any"))
# As the lineage of a version keeps them.
IN_LINEAGE: Final = ("training_data_digest", "git_commit", "run_url", "parent_version")
_DIGEST: Final = RegexValidator(r"^[0-9a-fA-F]{64}\Z", _("A SHA-256 digest has 64 hexadecimal digits."))
_COMMIT: Final = RegexValidator(
    r"^(?:[0-9a-fA-F]{40}|[0-9a-fA-F]{64})\Z", _("The whole hash of a commit: 40 or 64 hexadecimal digits.")
)
_PARENT: Final = RegexValidator(r"^[^@]+@[^@]+\Z", _("Write it as ADAPTER@VERSION."))


class _Filters(forms.Form):
    """Choices are those of the reader: the names of tenants and base models."""

    q = forms.CharField(label=_("Search"), required=False, max_length=200)
    tenant = forms.ChoiceField(label=_("Tenant"), required=False)
    base_model = forms.ChoiceField(label=_("Base model"), required=False)

    def __init__(self, data: Any, *, tenants: Iterable[str], bases: Iterable[str]) -> None:  # noqa: ANN401  a QueryDict
        super().__init__(data, auto_id="filter_%s")
        for name, choices in (("tenant", tenants), ("base_model", bases)):
            self.fields[name].choices = [_ANY, *((each, each) for each in choices)]  # type: ignore[attr-defined]  # a ChoiceField

    @property
    def is_used(self) -> bool:
        """Whether anything is looked for."""
        return any(self.data.get(name) for name in self.fields)


class AdapterFilters(_Filters):
    q = forms.CharField(
        label=_("Search"), required=False, max_length=200, help_text=_("How a name begins, or tenant/name.")
    )


class VersionFilters(_Filters):
    q = forms.CharField(
        label=_("Search"),
        required=False,
        max_length=200,
        help_text=_("How an adapter's or a version's name begins, adapter@version, or a digest."),
    )
    state = forms.ChoiceField(
        label=_("State"),
        required=False,
        choices=[_ANY, *((state.value, word_for(state)) for state in VersionState)],
    )
    uploader = forms.CharField(label=_("Uploaded by (e-mail)"), required=False, max_length=254)
    training_data_digest = forms.CharField(label=_("Training data (SHA-256)"), required=False, validators=[_DIGEST])
    git_commit = forms.CharField(label=_("Commit"), required=False, validators=[_COMMIT])
    run_url = forms.CharField(label=_("Address of the run"), required=False, max_length=2000)
    parent_version = forms.CharField(
        label=_("Trained further from"), required=False, validators=[_PARENT], help_text=_("ADAPTER@VERSION")
    )
    metric = forms.CharField(
        label=_("Metrics"), required=False, max_length=1000, help_text=_("Such as eval_loss<2,accuracy>=0.9.")
    )

    def clean_metric(self) -> tuple[Bound, ...]:
        text = self.cleaned_data["metric"]
        try:
            return read_bounds(text) if text else ()
        except InvalidInput as error:
            raise forms.ValidationError(error.message) from error

    @property
    def searches_lineage(self) -> bool:
        """Whether one of the fields about where versions come from is filled in."""
        return any(self.data.get(name) for name in (*IN_LINEAGE, "metric"))
