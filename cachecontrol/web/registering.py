"""Registering a node, and giving one a new token. A token's text is in the answer to its form and nowhere else."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cachecontrol.selectors import find_node
from cachecontrol.services.nodes import NodeFacts, NodeWithToken, register_node, rotate_node_token
from cachecontrol.states import EngineKind
from registry.models import BaseModelRevision
from registry.permissions import Action
from registry.web.page import ConfirmPage, Facts, FormPage, Question

_MOST: Final = 2**31 - 1
_GIGABYTE: Final = 10**9
_MOST_GB: Final = 10**7


class NodeForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=63, help_text=gettext_lazy("Small letters, digits and hyphens.")
    )
    base_revision = forms.ModelChoiceField(
        label=gettext_lazy("Base model and revision"), queryset=BaseModelRevision.objects.none()
    )
    engine_kind = forms.ChoiceField(
        label=gettext_lazy("Engine"), choices=[(kind.value, kind.name) for kind in EngineKind]
    )
    engine_url = forms.CharField(
        label=gettext_lazy("Address of the engine"),
        max_length=500,
        help_text=gettext_lazy("As gateways reach it, such as http://10.0.0.7:8000."),
    )
    gpu_slots = forms.IntegerField(
        label=gettext_lazy("GPU slots"),
        min_value=1,
        max_value=_MOST,
        help_text=gettext_lazy("How many adapters fit its GPU at once (vLLM: --max-loras)."),
    )
    cpu_slots = forms.IntegerField(
        label=gettext_lazy("Adapters in memory"),
        min_value=1,
        max_value=_MOST,
        help_text=gettext_lazy("How many it keeps in all, slots included (vLLM: --max-cpu-loras)."),
    )
    max_rank = forms.IntegerField(label=gettext_lazy("Largest rank"), min_value=1, max_value=_MOST, initial=64)
    disk_gb = forms.FloatField(
        label=gettext_lazy("Disk for versions (GB)"), min_value=0.001, max_value=_MOST_GB, initial=100
    )
    memory_gb = forms.FloatField(
        label=gettext_lazy("Memory for versions (GB)"),
        min_value=0.001,
        max_value=_MOST_GB,
        required=False,
        help_text=gettext_lazy("Empty: as much as the policy says."),
    )

    def __init__(self, data: Any = None) -> None:  # noqa: ANN401  a QueryDict or None
        super().__init__(data)
        revisions = BaseModelRevision.objects.select_related("base_model").defer("description")
        field: Any = self.fields["base_revision"]
        field.queryset = revisions.order_by("base_model__name", "label")


class RegisterNodePage(FormPage):
    actions = {"get": Action.MANAGE_PLATFORM, "post": Action.MANAGE_PLATFORM}
    form_class = NodeForm
    template_name = "cachecontrol/node_new.html"

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        kept = {name: data[name] for name in ("engine_kind", "engine_url", "gpu_slots", "cpu_slots", "max_rank")}
        facts = NodeFacts(
            base_revision=data["base_revision"],
            disk_bytes=int(data["disk_gb"] * _GIGABYTE),
            memory_bytes=int(data["memory_gb"] * _GIGABYTE) if data["memory_gb"] else None,
            **kept,
        )
        made = register_node(actor=self.actor, name=data["name"], facts=facts)
        return self.show(_told(made))


class RotateNodeTokenPage(ConfirmPage):
    actions = {"get": Action.MANAGE_PLATFORM, "post": Action.MANAGE_PLATFORM}

    def question(self) -> Question:
        node = find_node(name=self.kwargs["node"])
        return Question(
            heading=_("Give %(node)s a new token?") % {"node": node},
            consequences=(
                _("Its present token stops working at once: its agent can't report until it has the new one."),
                _("The new token is shown once."),
            ),
            label=_("Make a new token"),
            back=reverse("node", kwargs={"node": node.name}),
            is_danger=True,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        made = rotate_node_token(actor=self.actor, node=find_node(name=self.kwargs["node"]))
        return self.show(_told(made), template="cachecontrol/node_new.html")


def _told(made: NodeWithToken) -> Facts:
    return {"made": made.node, "text": made.token}
