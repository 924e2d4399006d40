"""How well the fleet serves, at a glance: of everybody for the platform's people, of one tenant for its own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cachecontrol.metrics import LOAD_BUCKETS, QUANTILES, TIERS, Traffic
from cachecontrol.requests.period import period_of
from cachecontrol.requests.usage import UsageBy, UsageFigures, usage_of
from cachecontrol.services.figures import read_loads, read_traffic
from cachecontrol.web.words import word_of
from registry.permissions import Action
from registry.web.page import Page

_P50, _P95, _P99 = (QUANTILES.index(each) for each in (0.5, 0.95, 0.99))
_MOST: Final = 20
_DAYS: Final = (1, 7, 30)
_WHOLE: Final = 100
_MS_PER_S: Final = 1000


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a table with a bar in it; ``width`` is in percent of the longest, ``cells`` are texts."""

    label: str
    width: float
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bars:
    """A small chart that is a table as well."""

    title: str
    of: str
    columns: tuple[str, ...]
    rows: list[Bar]


class FiguresPage(Page):
    """The last minutes of the whole fleet: it names every tenant."""

    actions = {"get": Action.VIEW_CACHE_POLICY}
    template_name = "cachecontrol/figures.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        window = timedelta(seconds=settings.METRICS_WINDOW_S)
        since = timezone.now() - window
        traffic = read_traffic(since=since, most=_MOST)
        tiers = {name: each.requests for (kind, name, _adapter), each in traffic.items() if kind == "tier"}
        adapters = {f"{name}/{adapter}": each for (_kind, name, adapter), each in traffic.items() if adapter}
        charts = [hits(tiers), loads(read_loads(since=since)), first_bytes(adapters), errors(adapters)]
        return self.show({"charts": charts, "minutes": window.total_seconds() / 60, "is_empty": not traffic})


class DaysForm(forms.Form):
    days = forms.TypedChoiceField(
        label=gettext_lazy("Days"), choices=[(days, days) for days in _DAYS], coerce=int, required=False
    )


class TenantFiguresPage(Page):
    """A tenant's own requests, by alias."""

    actions = {"get": Action.VIEW_TENANT}
    template_name = "cachecontrol/tenant_figures.html"

    def get(self, request: HttpRequest, tenant: str) -> HttpResponse:
        form = DaysForm(request.GET)
        days = (form.cleaned_data["days"] or 1) if form.is_valid() else 1
        period = period_of(since=timezone.now() - timedelta(days=days), until=None)
        usage = usage_of(tenant=self.owner, period=period, by=UsageBy.ALIAS)
        groups = [(name or _("(no alias)"), each) for name, each in usage.groups[:_MOST]]
        charts = [hits(usage.total.tiers), times_of(groups), failures_of(groups), costs_of(groups)]
        facts: dict[str, Any] = {"owner": self.owner, "form": form, "days": days, "choices": _DAYS}
        return self.show({**facts, "total": usage.total, "charts": charts})


def hits(tiers: Mapping[str, int]) -> Bars:
    """Where versions were when requests for them came."""
    whole = sum(tiers.get(tier, 0) for tier in TIERS)
    rows = []
    for tier in TIERS:
        number = tiers.get(tier, 0)
        share = _WHOLE * number / whole if whole else 0.0
        rows.append(Bar(str(word_of(tier)), share, (_percent(share), f"{number:,}")))
    return Bars(_("Where versions were when they were asked for"), _("Tier"), (_("Share"), _("Requests")), rows)


def loads(milliseconds: Sequence[int]) -> Bars:
    """How long loads into engines took."""
    counts, low = [], 0.0
    for high in (*LOAD_BUCKETS, float("inf")):
        counts.append((low, high, sum(1 for ms in milliseconds if low < ms <= high or (low == 0 and ms == 0))))
        low = high
    most = max((number for _low, _high, number in counts), default=0)
    rows = [
        Bar(_between(low, high), _WHOLE * number / most, (f"{number:,}",)) for low, high, number in counts if number
    ]
    return Bars(_("How long loads into engines took"), _("Time"), (_("Loads"),), rows)


def first_bytes(adapters: Mapping[str, Traffic]) -> Bars:
    timed = {name: each for name, each in adapters.items() if each.ttft_ms}
    slowest = sorted(timed.items(), key=lambda pair: -pair[1].ttft_ms[_P95])
    return _times((name, each.ttft_ms) for name, each in slowest)


def times_of(groups: Iterable[tuple[str, UsageFigures]]) -> Bars:
    return _times(((name, each.ttft_ms) for name, each in groups if each.ttft_ms), of=_("Alias"))


def errors(adapters: Mapping[str, Traffic]) -> Bars:
    return _failed(((name, each.failed, each.requests) for name, each in adapters.items()), of=_("Adapter"))


def failures_of(groups: Iterable[tuple[str, UsageFigures]]) -> Bars:
    return _failed(((name, each.failed, each.requests) for name, each in groups), of=_("Alias"))


def costs_of(groups: Iterable[tuple[str, UsageFigures]]) -> Bars:
    """What the requests cost."""
    spent = [(name, each.engine_ms / _MS_PER_S, each.requests) for name, each in groups]
    rows = [(name, seconds, (f"{seconds:,.1f}", f"{requests:,}")) for name, seconds, requests in spent]
    return Bars(_("Time that engines spent"), _("Alias"), (_("Seconds"), _("Requests")), _scaled(rows))


def _times(found: Iterable[tuple[str, Sequence[float]]], *, of: str = "") -> Bars:
    rows = [(name, times[_P95], tuple(f"{times[each]:,.0f}" for each in (_P95, _P50, _P99))) for name, times in found]
    columns = (_("p95 ms"), _("p50 ms"), _("p99 ms"))
    return Bars(_("Time to the first byte"), of or _("Adapter"), columns, _scaled(rows))


def _failed(found: Iterable[tuple[str, int, int]], *, of: str) -> Bars:
    shares = [(name, _WHOLE * failed / requests, failed, requests) for name, failed, requests in found if requests]
    shares.sort(key=lambda row: -row[1])
    rows = [
        Bar(name, share, (_percent(share), f"{failed:,}", f"{requests:,}")) for name, share, failed, requests in shares
    ]
    return Bars(_("Requests that failed"), of, (_("Share"), _("Failed"), _("Requests")), rows)


def _scaled(rows: Sequence[tuple[str, float, tuple[str, ...]]]) -> list[Bar]:
    most = max((value for _name, value, _cells in rows), default=0.0)
    return [Bar(name, _WHOLE * value / most if most else 0.0, cells) for name, value, cells in rows]


def _percent(share: float) -> str:
    return f"{share:.1f} %"


def _between(low: float, high: float) -> str:
    if high == float("inf"):
        return _("more than %(low)s") % {"low": _time(low)}
    return _("up to %(high)s") % {"high": _time(high)}


def _time(milliseconds: float) -> str:
    return f"{milliseconds:g} ms" if milliseconds < _MS_PER_S else f"{milliseconds / _MS_PER_S:g} s"
