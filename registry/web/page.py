"""What every page does before its own work, and how forms and confirmations go."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views import View
from django_htmx.http import HttpResponseClientRedirect

from registry.actors import Actor
from registry.errors import LorekeeperError, NotFound
from registry.models import Tenant
from registry.permissions import Action
from registry.web.allowing import require
from registry.web.reader import TENANT_IN_SESSION, actor_of

Facts = dict[str, Any]
# What a form shows beside its fields would be lost on whoever may not see the page at all.
_NOT_FOR_FORMS = (NotFound,)


class Page(View):
    """One address below ``/ui/``.

    Attributes:
        actions: the permission that each method asks for, by lower-case method; None where it is open to whoever is
            signed in, on purpose. Services and selectors ask again: this is the door, not the lock.
        is_public: open to whoever is not signed in.
        template_name: the one template of the page.
        actor: who asks.
        tenant: the tenant in the address, for pages whose action is asked for in a tenant.

    """

    actions: ClassVar[Mapping[str, Action | None]] = {}
    is_public: ClassVar[bool] = False
    template_name: ClassVar[str] = ""
    actor: Actor
    tenant: Tenant | None = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # noqa: ANN401  Django's own signature
        if self.is_public:
            return super().dispatch(request, *args, **kwargs)
        if not request.user.is_authenticated:
            return _to_sign_in(request)
        self.actor = actor_of(request)
        method = str(request.method).lower()
        action = self.actions.get("get" if method == "head" else method)
        if action is not None:
            self.tenant = require(self.actor, action, tenant=kwargs.get("tenant"))
        if self.tenant is not None and request.session.get(TENANT_IN_SESSION) != self.tenant.name:
            request.session[TENANT_IN_SESSION] = self.tenant.name
        return super().dispatch(request, *args, **kwargs)

    @property
    def owner(self) -> Tenant:
        """The tenant of a page that is about one."""
        if self.tenant is None:
            message = f"{type(self).__name__} asks for no action in a tenant"
            raise TypeError(message)
        return self.tenant

    def show(self, facts: Facts | None = None, *, status: int = 200, template: str = "") -> HttpResponse:
        """The page's template with ``facts``, or another one that shows what the page has made."""
        return render(self.request, template or self.template_name, facts, status=status)

    def leave(self, address: str, said: str = "") -> HttpResponse:
        """After a write: go to ``address``, where ``said`` is shown once. What a dialog sent goes there as a whole."""
        if said:
            messages.success(self.request, said)
        return HttpResponseClientRedirect(address) if self.request.headers.get("HX-Request") else redirect(address)


class FormPage(Page):
    """A page with one form: GET shows it, POST carries it out and leaves, or shows it again with what is wrong.

    A subclass has ``form_class``, ``save`` and, if it shows more than the form, ``facts``.
    """

    form_class: ClassVar[type[Form]]

    def facts(self) -> Facts:
        """What the template needs beside ``form``."""
        return {}

    def make_form(self, data: Any = None) -> Form:  # noqa: ANN401  a QueryDict or None
        return self.form_class(data)

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        """Carry it out through one service, and ``leave``. ``data`` is what the form found sound."""
        raise NotImplementedError

    def get(self, request: HttpRequest, **_kwargs: str) -> HttpResponse:
        return self.show({**self.facts(), "form": self.make_form()})

    def post(self, request: HttpRequest, **_kwargs: str) -> HttpResponse:
        form = self.make_form(request.POST)
        if form.is_valid():
            try:
                return self.save(form.cleaned_data)
            except LorekeeperError as error:
                if error.is_denial or isinstance(error, _NOT_FOR_FORMS):
                    raise
                put_into(form, error)
        return self.show({**self.facts(), "form": form}, status=422)


def put_into(form: Form, error: LorekeeperError) -> None:
    """Show what a service refused next to the field that it speaks of, or above the form."""
    form.add_error(error.field if error.field in form.fields else None, error.message)


def _to_sign_in(request: HttpRequest) -> HttpResponse:
    if request.headers.get("HX-Request"):
        return HttpResponseClientRedirect(reverse("account_login"))
    return redirect_to_login(request.get_full_path())


@dataclass(frozen=True, slots=True)
class Question:
    """What a confirmation asks.

    Attributes:
        heading: the act, as a question or an order.
        consequences: sentences that say exactly what will change.
        label: what the button says.
        back: where "cancel" leads.
        is_danger: it can't be undone, or hurts.

    """

    heading: str
    consequences: tuple[str, ...]
    label: str
    back: str
    is_danger: bool = False


class ConfirmPage(FormPage):
    """A form page that asks before it acts: a page of its own, and where scripts run a dialog over another page.

    A subclass has ``question`` and ``save``, and a ``form_class`` where it asks for more than a yes.
    """

    form_class = Form
    template_name = "ui/confirm.html"

    def question(self) -> Question:
        raise NotImplementedError

    def facts(self) -> Facts:
        return {"question": self.question(), "action": self.request.path}
