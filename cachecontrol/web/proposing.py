"""The editor of cache policies, and the decisions on what was proposed: always somebody else's."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Final

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import ValidationError

from cachecontrol.models import CachePolicy
from cachecontrol.policies import active_policy, get_base_model, get_cache_policy, in_force
from cachecontrol.policy.diff import Change, diff
from cachecontrol.policy.effective import PolicyInForce, built_in
from cachecontrol.policy.faults import Fault, find_faults
from cachecontrol.policy.pinning import with_pin
from cachecontrol.policy.tenants import Pin
from cachecontrol.services.policies import (
    DEFAULTS,
    approve_policy,
    check_policy,
    decline_policy,
    propose_policy,
    roll_back_policy,
)
from cachecontrol.web.policies import compare, meaning_of, text_in_force
from registry.documents.read import MAX_CHARACTERS
from registry.errors import InvalidInput
from registry.models import BaseModel
from registry.permissions import Action
from registry.web.page import ConfirmPage, Facts, FormPage, Question

_MAX_TEXT: Final = 4000
_TOLD: Final = 12
_PIN: Final = ("tenant", "adapter", "version")


class PolicyForm(forms.Form):
    text = forms.CharField(
        label=gettext_lazy("Policy (YAML)"),
        max_length=MAX_CHARACTERS,
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 24, "spellcheck": "false", "autocapitalize": "off", "class": "code", "dir": "ltr"}
        ),
    )
    comment = forms.CharField(
        label=gettext_lazy("What it is for"),
        max_length=_MAX_TEXT,
        required=False,
        help_text=gettext_lazy("Whoever decides on it reads this."),
    )

    def clean_text(self) -> str:
        # Browsers send lines as CRLF; what is kept is what was written.
        text = str(self.cleaned_data["text"]).replace("\r\n", "\n")
        faults = find_faults(text)
        if faults:
            raise forms.ValidationError([_told(fault) for fault in faults])
        return text

    def add_error(self, field: str | None, error: Any) -> None:  # noqa: ANN401  Django's own signature
        """Whatever a service refuses speaks of the text: its paths are no fields of the form."""
        super().add_error(field or "text", error)


def _told(fault: Fault) -> str:
    if fault.line is None:
        return f"{fault.path}: {fault.message}" if fault.path else fault.message
    return _("Line %(line)d, %(path)s: %(message)s") % {
        "line": fault.line,
        "path": fault.path,
        "message": fault.message,
    }


class ProposePolicyPage(FormPage):
    """“Check” shows what it would mean and change and keeps nothing; “Propose” keeps it for somebody to decide on."""

    actions = {"get": Action.MANAGE_PLATFORM, "post": Action.MANAGE_PLATFORM}
    form_class = PolicyForm
    template_name = "cachecontrol/policy_new.html"

    @cached_property
    def model(self) -> BaseModel:
        return get_base_model(actor=self.actor, name=self.kwargs["base_model"], action=Action.MANAGE_PLATFORM)

    @cached_property
    def active(self) -> PolicyInForce:
        return active_policy(self.model)

    def facts(self) -> Facts:
        return {"model": self.model, "number": self.active.number or DEFAULTS}

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        return PolicyForm(data, initial={"text": self._begin()} if data is None else None)

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        if "check" in self.request.POST:
            return self._preview(data["text"])
        policy = propose_policy(actor=self.actor, base_model=self.model, text=data["text"], comment=data["comment"])
        address = reverse("policy", kwargs={"base_model": self.model.name, "number": policy.number})
        return self.leave(address, _("Policy %(number)d is proposed.") % {"number": policy.number})

    def _preview(self, text: str) -> HttpResponse:
        document = check_policy(actor=self.actor, base_model=self.model, text=text)
        meaning = meaning_of(PolicyInForce(number=None, document=document), self.model)
        comparison = compare(document, text, self.active, text_in_force(self.model, self.active))
        form = self.make_form(self.request.POST)
        return self.show({**self.facts(), "form": form, "meaning": meaning, "comparison": comparison})

    def _begin(self) -> str:
        """What is in force, with one pin more where the address asks for it."""
        text = text_in_force(self.model, self.active)
        named = {name: self.request.GET.get(f"pin_{name}", "") for name in _PIN}
        if not all(named.values()):
            return text
        try:
            return with_pin(text, Pin(**named))
        except ValidationError as error:
            raise InvalidInput(_("That is no version that could be pinned."), field="pin_version") from error


class DecideForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=_MAX_TEXT,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("Kept with the policy and in the audit log."),
    )


class ApproveForm(DecideForm):
    """Carries what was looked at, so that nothing else is approved and nothing else replaced."""

    digest = forms.CharField(widget=forms.HiddenInput, max_length=64)
    against = forms.IntegerField(widget=forms.HiddenInput, min_value=0)

    def add_error(self, field: str | None, error: Any) -> None:  # noqa: ANN401  Django's own signature
        """What is wrong with what nobody sees stands above the form."""
        super().add_error(None if field in {"digest", "against"} else field, error)


class DeclineForm(DecideForm):
    def __init__(self, data: Any = None) -> None:  # noqa: ANN401  a QueryDict or None
        super().__init__(data)
        self.fields["reason"].required = True


class DecidePage(ConfirmPage):
    """About one policy."""

    form_class: ClassVar[type[forms.Form]]
    actions = {"get": Action.MANAGE_PLATFORM, "post": Action.MANAGE_PLATFORM}

    @cached_property
    def policy(self) -> CachePolicy:
        names = {"base_model": self.kwargs["base_model"], "number": self.kwargs["number"]}
        return get_cache_policy(actor=self.actor, **names, action=Action.MANAGE_PLATFORM)

    @cached_property
    def active(self) -> PolicyInForce:
        return active_policy(self.policy.base_model)

    @property
    def names(self) -> Facts:
        return {
            "number": self.kwargs["number"],
            "base": self.kwargs["base_model"],
            "active": self.active.number or DEFAULTS,
        }

    @property
    def address(self) -> str:
        return reverse("policy", kwargs={name: self.kwargs[name] for name in ("base_model", "number")})


class ApprovePolicyPage(DecidePage):
    form_class = ApproveForm

    def question(self) -> Question:
        changes = diff(self.active.document, in_force(self.policy).document)
        first = _("Policy %(number)d comes into force for %(base)s in place of %(active)d (0: the defaults), at once.")
        return Question(
            heading=_("Approve policy %(number)d of %(base)s?") % self.names,
            consequences=(
                first % self.names,
                *told_changes(changes),
            ),
            label=_("Approve it"),
            back=self.address,
        )

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        return ApproveForm(data, initial={"digest": self.policy.digest, "against": self.active.number or DEFAULTS})

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        approve_policy(actor=self.actor, policy=self.policy, **data)
        return self.leave(self.address, _("Policy %(number)d is in force.") % self.names)


class DeclinePolicyPage(DecidePage):
    form_class = DeclineForm

    def question(self) -> Question:
        return Question(
            heading=_("Decline policy %(number)d of %(base)s?") % self.names,
            consequences=(_("It can't be approved any more; what is in force stays."),),
            label=_("Decline it"),
            back=self.address,
            is_danger=True,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        decline_policy(actor=self.actor, policy=self.policy, reason=data["reason"])
        return self.leave(self.address, _("Policy %(number)d is declined.") % self.names)


class RollBackPolicyPage(DecidePage):
    """Back to what was in force earlier, or to the defaults (number 0); takes nobody else."""

    form_class = DecideForm

    @cached_property
    def model(self) -> BaseModel:
        return get_base_model(actor=self.actor, name=self.kwargs["base_model"], action=Action.MANAGE_PLATFORM)

    @cached_property
    def active(self) -> PolicyInForce:
        return active_policy(self.model)

    @property
    def address(self) -> str:
        return reverse("pool_policies", kwargs={"base_model": self.model.name})

    def question(self) -> Question:
        number = self.kwargs["number"]
        target = built_in(self.model.name) if number == DEFAULTS else in_force(self.policy)
        first = _("Policy %(number)d (0: the defaults) is in force for %(base)s again in place of %(active)d, at once.")
        return Question(
            heading=_("Roll back to policy %(number)d of %(base)s?") % self.names,
            consequences=(first % self.names, *told_changes(diff(self.active.document, target.document))),
            label=_("Roll back"),
            back=self.address,
            is_danger=True,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        roll_back_policy(actor=self.actor, base_model=self.model, to=self.kwargs["number"], reason=data["reason"])
        return self.leave(self.address, _("Policy %(number)d is in force again.") % self.names)


def told_changes(changes: tuple[Change, ...]) -> list[str]:
    """The first of them, one sentence each."""
    told = [
        _("%(path)s: %(before)s → %(after)s")
        % {"path": each.path, "before": _shown(each.before), "after": _shown(each.after)}
        for each in changes[:_TOLD]
    ]
    if len(changes) > _TOLD:
        told.append(_("And %(number)d values more.") % {"number": len(changes) - _TOLD})
    return told or [_("Nothing changes: it means the same.")]


def _shown(value: Any) -> str:  # noqa: ANN401  any JSON value
    return _("nothing") if value is None else str(value)
