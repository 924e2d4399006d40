"""What people call the words of cache control, and how each is to be read at a glance. Pure but for translation."""

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from cachecontrol.states import EvictionReason

WORDS: Final[dict[str, Promise]] = {
    "gpu": _("GPU"),
    "cpu": _("CPU memory"),
    "disk": _("disk"),
    "remote": _("object store"),
    "absent": _("nowhere"),
    "fetching": _("fetching"),
    "on_disk": _("on disk"),
    "loading": _("loading"),
    "loaded": _("loaded"),
    "draining": _("draining"),
    "failed": _("failed"),
    "queued": _("queued"),
    "placed": _("placed"),
    "proposed": _("proposed"),
    "active": _("in force"),
    "superseded": _("superseded"),
    "declined": _("declined"),
    "gpu_slots": _("GPU slots"),
    "cpu_bytes": _("CPU memory"),
    "disk_bytes": _("disk"),
    "closed": _("takes nothing new"),
    "unsound": _("not sound"),
    "lost": _("down"),
    "new": _("never reported"),
}

KINDS: Final[dict[str, str]] = {
    "fetching": "busy",
    "loading": "busy",
    "draining": "busy",
    "loaded": "good",
    "failed": "bad",
    "queued": "waiting",
    "placed": "busy",
    "proposed": "waiting",
    "active": "good",
    "declined": "bad",
}

REASONS: Final[dict[str, Promise]] = {
    EvictionReason.ROOM.value: _("to make room for another version"),
    EvictionReason.QUOTA.value: _("its tenant is above its quota"),
    EvictionReason.TTL.value: _("it was idle for too long"),
    EvictionReason.IDLE.value: _("it was idle and the engine was above its high-water mark"),
    EvictionReason.DRAIN.value: _("the node was drained"),
    EvictionReason.PRESSURE.value: _("the disk was full"),
    EvictionReason.WITHDRAWN.value: _("the version was revoked"),
    EvictionReason.MANUAL.value: _("an operator asked for it"),
    EvictionReason.PLAN.value: _("the plan has it elsewhere"),
    EvictionReason.ROLLBACK.value: _("its release was rolled back"),
}

# What scores are sums of, by the names that they are recorded under; see ``docs/scoring.md``.
FACTORS: Final[dict[str, Promise]] = {
    "rate": _("how often it is asked for"),
    "tenant_rate": _("how often its tenant asks for anything"),
    "reload": _("what loading it again takes"),
    "priority": _("its tenant's priority"),
    "retiring": _("no alias points to it any more"),
    "clock": _("the node's clock of evictions"),
    "worth": _("worth for its size"),
    "hits": _("hits"),
    "idle_minutes": _("minutes idle"),
    "idle": _("how long it was idle"),
    "memory": _("the memory it takes"),
}


def word_of(value: object) -> Promise | str:
    """The word; what is not known is shown as it is."""
    return WORDS.get(str(value), str(value))
