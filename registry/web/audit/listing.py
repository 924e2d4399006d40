"""The log, newest first, and what the filters leave of it."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from registry.audit import PLATFORM_CHAIN
from registry.models import AuditRecord
from registry.naming import check_name
from registry.permissions import Action
from registry.services.audit.checks import read_log
from registry.services.audit.search import Found, Wanted
from registry.web.allowing import may
from registry.web.audit.alarms import alarm_of
from registry.web.audit.filters import FiltersForm, wanted_of
from registry.web.audit.pages import LogPage, way_in
from registry.web.audit.texts import visible
from registry.web.page import Facts, Page
from registry.web.paging import AFTER, BEFORE, Rows
from registry.web.reader import Reader, reader_of
from registry.webhooks.kinds import KINDS

_NUMBER: Final = re.compile("[0-9]{1,18}", re.ASCII)
_PLACES: Final = (AFTER, BEFORE, "log")


@dataclass(frozen=True, slots=True)
class Line:
    """One record as the list shows it."""

    record: AuditRecord
    address: str

    @property
    def at(self) -> datetime:
        return self.record.at

    @property
    def who(self) -> str:
        return visible(self.record.actor.get("name") or self.record.actor.get("id") or "")

    @property
    def kind_of_who(self) -> str:
        return str(self.record.actor.get("kind", ""))

    @property
    def object(self) -> str:
        told = self.record.object
        return visible(told.get("name") or told.get("id") or "")

    @property
    def kind_of_object(self) -> str:
        return visible(str(self.record.object.get("kind", "")))

    @property
    def reason(self) -> str:
        return visible(self.record.reason)

    @property
    def is_denied(self) -> bool:
        return is_denied(self.record)


class AuditPage(LogPage):
    actions = {"get": Action.READ_AUDIT}
    template_name = "registry/audit/log.html"

    def get(self, request: HttpRequest, tenant: str | None = None) -> HttpResponse:
        form = FiltersForm(request.GET)
        facts: Facts = {
            "form": form,
            "is_narrowed": any(form.data.get(name) for name in form.fields),
            "kinds": KINDS,
            "logs": logs_of(reader_of(request)),
            "export_address": self.way("audit_export"),
        }
        if not form.is_valid():
            return self.show(self.mine(**facts), status=422)
        return self.show(self.mine(**facts, **self.found(wanted_of(form.cleaned_data))))

    def found(self, wanted: Wanted) -> Facts:
        before, after = (_number(self.request.GET.get(name, "")) for name in (BEFORE, AFTER))
        found, state = read_log(actor=self.actor, tenant=self.log_of, wanted=wanted, before=before, after=after)
        alarm = alarm_of(state.finding, state.broken_at)
        lines = [Line(each, self.way("audit_record", seq=each.seq)) for each in found.records]
        return {"found": found, "lines": lines, "rows": self.rows(found), "state": state, "alarm": alarm}

    def rows(self, found: Found) -> Rows[AuditRecord]:
        records = found.records
        newest = records[0].seq if records else found.looked_from
        oldest = found.looked_to if found.is_cut or not records else records[-1].seq
        return Rows(
            rows=records,
            first=_address(self.request) if found.has_newer else "",
            previous=_address(self.request, **{AFTER: str(newest)}) if found.has_newer else "",
            following=_address(self.request, **{BEFORE: str(oldest)}) if found.has_older else "",
        )


class AuditGoPage(Page):
    """Leads to the log that was chosen, with what it was narrowed to; that page asks whether the reader may."""

    actions = {"get": None}

    def get(self, request: HttpRequest) -> HttpResponse:
        chosen = request.GET.get("log", "")
        tenant = None if chosen in {"", PLATFORM_CHAIN} else check_name(chosen, field="log")
        query = _without_places(request.GET)
        address = way_in(tenant, "audit") if chosen else reverse("home")
        return redirect(f"{address}?{query.urlencode()}" if query and chosen else address)


def logs_of(reader: Reader) -> list[str]:
    """The logs that the reader may read, by name; the platform's is last."""
    own = [each.name for each in reader.tenants if may(reader.actor, Action.READ_AUDIT, of=each)]
    return [*own, PLATFORM_CHAIN] if may(reader.actor, Action.READ_PLATFORM_AUDIT) else own


def is_denied(record: AuditRecord) -> bool:
    return record.action.endswith(":access:deny")


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def _address(request: HttpRequest, **place: str) -> str:
    query = _without_places(request.GET)
    query.update(place)
    return f"{request.path}?{query.urlencode()}" if query else request.path


def _without_places(given: QueryDict) -> QueryDict:
    query = given.copy()
    for name in [each for each in query if each in _PLACES or not query[each]]:
        del query[name]
    return query
