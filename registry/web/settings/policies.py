"""Who approves a tenant's versions, and whether pipelines have to sign them."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.models import ApprovalPolicy
from registry.permissions import Action
from registry.quorum import APPROVER_ROLES
from registry.reviews import policy_of
from registry.services.pipeline_signatures import change_signing_policy
from registry.services.review.policies import MAX_DAYS, MAX_REQUIRED, set_approval_policy
from registry.states import Role
from registry.web.page import ConfirmPage, Facts, FormPage, Question
from registry.web.seen import SeenField, seen
from registry.web.words import word_for

_IN_POLICY: Final = ("required", "roles", "only_people", "required_people", "validity_days")


class ApprovalPolicyForm(forms.Form):
    required = forms.IntegerField(
        label=gettext_lazy("How many people have to approve"), min_value=1, max_value=MAX_REQUIRED
    )
    roles = forms.MultipleChoiceField(
        label=gettext_lazy("Who may approve"),
        choices=[(role.value, word_for(role)) for role in sorted(APPROVER_ROLES)],
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Members with one of these roles."),
    )
    only_people = forms.CharField(
        label=gettext_lazy("Only these of them"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("E-mail addresses, one a line. Empty: all of them."),
    )
    required_people = forms.CharField(
        label=gettext_lazy("Each of these has to be among them"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("E-mail addresses, one a line."),
    )
    validity_days = forms.IntegerField(
        label=gettext_lazy("Days that an approval counts"),
        required=False,
        min_value=1,
        max_value=MAX_DAYS,
        help_text=gettext_lazy("Empty: for ever."),
    )

    seen = SeenField()

    def clean_only_people(self) -> list[str]:
        return str(self.cleaned_data["only_people"]).split()

    def clean_required_people(self) -> list[str]:
        return str(self.cleaned_data["required_people"]).split()


class SigningPolicyForm(forms.Form):
    seen = SeenField()


class ApprovalPolicyPage(FormPage):
    actions = {"get": Action.VIEW_TENANT, "post": Action.MANAGE_TENANT}
    form_class = ApprovalPolicyForm
    template_name = "registry/settings/approval_policy.html"

    def facts(self) -> Facts:
        return {"tenant": self.owner, "policy": policy_of(self.owner)}

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        policy = policy_of(self.owner)
        now = {name: getattr(policy, name) for name in _IN_POLICY}
        people = {name: "\n".join(now[name]) for name in ("only_people", "required_people")}
        return ApprovalPolicyForm(data, initial={**now, **people, "seen": seen(now)})

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        wanted = {**data, "roles": [Role(role) for role in data["roles"]]}
        expected = ApprovalPolicy(tenant=self.owner, **wanted.pop("seen"))
        set_approval_policy(actor=self.actor, tenant=self.owner, **wanted, expected=expected)
        address = reverse("approval_policy", kwargs={"tenant": self.owner.name})
        return self.leave(address, _("The policy holds from now on, for every candidate."))


class SigningPolicyPage(ConfirmPage):
    """Turns the demand for pipelines' own signatures on or off."""

    actions = {"get": Action.MANAGE_TENANT, "post": Action.MANAGE_TENANT}
    form_class = SigningPolicyForm

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        now = {"is_required": self.owner.require_pipeline_signature}
        return SigningPolicyForm(data, initial={"seen": seen(now)})

    def question(self) -> Question:
        if self.owner.require_pipeline_signature:
            heading, label = _("No longer ask for signatures of pipelines?"), _("Don't ask any more")
            effect = _("Candidates without a signature of their pipeline can be approved again.")
        else:
            heading, label = _("Ask for signatures of pipelines?"), _("Ask for them")
            effect = _("A candidate can be approved only when a registered key of a pipeline signed it.")
        return Question(
            heading=heading,
            consequences=(effect, _("Versions that are approved stay so.")),
            label=label,
            back=reverse("pipeline_keys", kwargs={"tenant": self.owner.name}),
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        was_required = bool(data["seen"]["is_required"])
        change_signing_policy(
            actor=self.actor,
            tenant=self.owner,
            require_pipeline_signature=not was_required,
            expected=was_required,
        )
        return self.leave(reverse("pipeline_keys", kwargs={"tenant": self.owner.name}), _("The policy is changed."))
