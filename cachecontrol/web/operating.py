"""What an operator does with a node as a whole, each asked for with what will happen."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from cachecontrol.fleet import NodeTiers, read_tiers
from cachecontrol.models import Node
from cachecontrol.selectors import find_node
from cachecontrol.services.lifecycle import cordon_node, drain_node, recycle_node, resume_node, uncordon_node
from registry.permissions import Action
from registry.web.page import ConfirmPage, Question

_REASON = 500


class ReasonForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=_REASON,
        required=False,
        help_text=gettext_lazy("Kept in the audit log."),
    )


class OperatePage(ConfirmPage):
    """A subclass says which service, and what will come of it."""

    actions = {"get": Action.MANAGE_PLATFORM, "post": Action.MANAGE_PLATFORM}
    form_class = ReasonForm
    operation: ClassVar[Callable[..., Node]]

    @cached_property
    def node(self) -> Node:
        return find_node(name=self.kwargs["node"])

    @cached_property
    def tiers(self) -> NodeTiers:
        return read_tiers(actor=self.actor, nodes=[self.node])[self.node.pk]

    @property
    def address(self) -> str:
        return reverse("node", kwargs={"node": self.node.name})

    def ask(self, heading: str, label: str, *consequences: str, is_danger: bool = False) -> Question:
        return Question(heading % {"node": self.node}, consequences, label, back=self.address, is_danger=is_danger)

    def done(self) -> str:
        raise NotImplementedError

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        type(self).operation(actor=self.actor, node=self.node, reason=data["reason"])
        return self.leave(self.address, self.done() % {"node": self.node})


class DrainPage(OperatePage):
    operation = drain_node

    def question(self) -> Question:
        held = self.tiers.gpu + self.tiers.cpu
        return self.ask(
            _("Drain %(node)s?"),
            _("Drain it"),
            _("Gateways send it no more requests; what runs there ends first."),
            ngettext(
                "%(number)d version in its engine is placed on other nodes of its pool and leaves.",
                "%(number)d versions in its engine are placed on other nodes of its pool and leave.",
                held,
            )
            % {"number": held},
            _("The engine goes on running. “Resume” takes the node back."),
        )

    def done(self) -> str:
        return _("%(node)s is being drained.")


class ResumePage(OperatePage):
    operation = resume_node

    def question(self) -> Question:
        sentence = _("Gateways may send it requests again, and versions are placed there.")
        return self.ask(_("Take %(node)s back?"), _("Resume it"), sentence, *self._cordon())

    def _cordon(self) -> tuple[str, ...]:
        return (_("It stays cordoned: nothing new is placed there until that is taken off, too."),) * self.node.cordoned

    def done(self) -> str:
        return _("%(node)s is not drained any more.")


class CordonPage(OperatePage):
    operation = cordon_node

    def question(self) -> Question:
        return self.ask(
            _("Cordon %(node)s?"),
            _("Cordon it"),
            _("Nothing new is placed there."),
            _("What is there stays and goes on answering."),
        )

    def done(self) -> str:
        return _("%(node)s is cordoned.")


class UncordonPage(OperatePage):
    operation = uncordon_node

    def question(self) -> Question:
        return self.ask(
            _("Take the cordon off %(node)s?"),
            _("Take it off"),
            _("Versions are placed there again as they are asked for."),
        )

    def done(self) -> str:
        return _("%(node)s is not cordoned any more.")


class RecyclePage(OperatePage):
    operation = recycle_node

    def question(self) -> Question:
        return self.ask(
            _("Restart the engine of %(node)s?"),
            _("Restart it"),
            _("Gateways send it no more requests; after a short time to end, what still runs there is cut off."),
            _("The restarted engine has forgotten every adapter; what is wanted there is loaded again."),
            is_danger=True,
        )

    def done(self) -> str:
        return _("The engine of %(node)s is to be restarted.")
