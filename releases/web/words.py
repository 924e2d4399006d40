"""What people call what only releases know. Pure but for translation."""

from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

KINDS_OF_STEP: Final[dict[str, Promise]] = {
    "prewarm": gettext_lazy("Warm up"),
    "evaluate": gettext_lazy("Offline evaluation"),
    "shadow": gettext_lazy("Shadow"),
    "canary": gettext_lazy("Canary"),
    "promote": gettext_lazy("Promote"),
}

STATES_OF_STEP: Final[dict[str, Promise]] = {
    "waiting": gettext_lazy("to come"),
    "running": gettext_lazy("under way"),
    "passed": gettext_lazy("passed"),
    "skipped": gettext_lazy("skipped"),
    "ended": gettext_lazy("cut short"),
}

# How a step's state looks as a badge.
LOOKS_OF_STEP: Final = {"waiting": "plain", "running": "busy", "passed": "good", "skipped": "plain", "ended": "bad"}

OUTCOMES: Final[dict[str, Promise]] = {
    "pass": gettext_lazy("pass"),
    "fail": gettext_lazy("fail"),
    "inconclusive": gettext_lazy("not known yet"),
}
LOOKS_OF_OUTCOME: Final = {"pass": "good", "fail": "bad", "inconclusive": "waiting"}

METRICS: Final[dict[str, Promise]] = {
    "errors": gettext_lazy("Errors"),
    "ttft": gettext_lazy("Time to the first token"),
    "total": gettext_lazy("Time of an answer"),
    "agreement": gettext_lazy("Shadow agreement"),
    "quality": gettext_lazy("What marks lack to the best"),
    "cost": gettext_lazy("Cost of an answer"),
}

KINDS_OF_MOVE: Final[dict[str, Promise]] = {
    "set": gettext_lazy("made"),
    "move": gettext_lazy("moved"),
    "rollback": gettext_lazy("rolled back"),
}


def minutes(value: float) -> str:
    """``3 minutes``, ``1.5 minutes``."""
    if float(value).is_integer():
        return ngettext("%(count)d minute", "%(count)d minutes", int(value)) % {"count": int(value)}
    return _("%(count)s minutes") % {"count": f"{value:g}"}


def share_of(spec: dict[str, Any]) -> str:
    """Whose requests a live step gives to the candidate, or copies to it."""
    shares = []
    if spec.get("tenants"):
        shares.append(_("tenants %(names)s") % {"names": ", ".join(spec["tenants"])})
    if spec.get("percent"):
        shares.append(_("%(percent)s %% of requests") % {"percent": f"{spec['percent']:g}"})
    return _(" and ").join(shares)


def needs_of(kind: str, spec: dict[str, Any]) -> list[str]:
    """What it takes for a step to pass, a phrase for each condition."""
    if kind == "promote":
        return [_("the alias moves to the candidate")]
    found = [_kind_needs(kind, spec)]
    if kind in {"shadow", "canary"}:
        found.append(_("at least %(time)s") % {"time": minutes(spec["min_minutes"])})
        count = int(spec["min_samples"])
        found.append(ngettext("at least %(count)d request", "at least %(count)d requests", count) % {"count": count})
    found.append(_("at most %(time)s") % {"time": minutes(spec["longest_minutes"])})
    if spec.get("gate"):
        found.append(_("then it waits for a person"))
    return found


def _kind_needs(kind: str, spec: dict[str, Any]) -> str:
    if kind == "prewarm":
        nodes = spec.get("nodes")
        if nodes is None:
            return _("on as many nodes as hold the stable version")
        return ngettext("on %(count)d node", "on %(count)d nodes", nodes) % {"count": nodes}
    if kind == "evaluate":
        return _("figures are needed") if spec.get("is_needed") else _("passed over where there are no figures")
    return share_of(spec)
