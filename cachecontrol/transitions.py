"""The one writer of a node's status, of what is desired and observed of a residency, and of a policy's state."""

from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from cachecontrol.models import CachePolicy, LoadRequest, Node, Residency
from cachecontrol.states import (
    LOAD_MOVES,
    NODE_MOVES,
    OBSERVED_MOVES,
    POLICY_MOVES,
    Desired,
    LoadState,
    NodeStatus,
    Observed,
    PolicyState,
    Tier,
)
from registry.errors import IllegalTransition, StaleState
from registry.models import Version

# What belongs to the last command and ends with it.
_FRESH: dict[str, Any] = {
    "command_sent_at": None,
    "attempts": 0,
    "retry_at": None,
    "drain_until": None,
    "message": "",
    "error_class": "",
    "error_code": "",
}

# Where a version is once it is observed there. An engine puts what it loads into a slot; for how long is not known.
_TIERS: dict[Observed, dict[str, Any]] = {
    Observed.ABSENT: {"tier": "", "tier_is_estimate": False},
    Observed.FETCHING: {"tier": "", "tier_is_estimate": False},
    Observed.ON_DISK: {"tier": Tier.DISK.value, "tier_is_estimate": False},
    Observed.LOADING: {"tier": Tier.DISK.value, "tier_is_estimate": False},
    Observed.LOADED: {"tier": Tier.GPU.value, "tier_is_estimate": True},
}


def move_node(node: Node, *, was: NodeStatus, to: NodeStatus) -> None:
    """Move ``node`` from ``was`` to ``to`` by compare-and-set. Raises ``IllegalTransition`` or ``StaleState``."""
    if (was, to) not in NODE_MOVES:
        raise IllegalTransition(_("A node does not move from %(was)s to %(to)s.") % {"was": was, "to": to})
    if not Node.objects.filter(pk=node.pk, status=was.value).update(status=to.value):
        raise StaleState(_("%(node)s was changed by somebody else meanwhile.") % {"node": node})
    node.status = to.value


def move_policy(policy: CachePolicy, *, was: PolicyState, to: PolicyState, **facts: Any) -> None:  # noqa: ANN401
    """Move a cache policy by compare-and-set, and set ``facts`` with it. Raises like ``move_node``."""
    if (was, to) not in POLICY_MOVES:
        raise IllegalTransition(_("A cache policy does not move from %(was)s to %(to)s.") % {"was": was, "to": to})
    if not CachePolicy.objects.filter(pk=policy.pk, state=was.value).update(state=to.value, **facts):
        raise StaleState(_("%(policy)s was changed by somebody else meanwhile.") % {"policy": policy})
    for name, value in {"state": to.value, **facts}.items():
        setattr(policy, name, value)


def move_load(request: LoadRequest, *, was: LoadState, to: LoadState, **facts: Any) -> None:  # noqa: ANN401
    """Move a wish to load by compare-and-set, with ``facts``. Raises ``IllegalTransition`` or ``StaleState``."""
    if (was, to) not in LOAD_MOVES:
        raise IllegalTransition(_("A load does not move from %(was)s to %(to)s.") % {"was": was, "to": to})
    if not LoadRequest.objects.filter(pk=request.pk, state=was.value).update(state=to.value, **facts):
        raise StaleState(_("%(request)s was changed by somebody else meanwhile.") % {"request": request})
    for name, value in {"state": to.value, **facts}.items():
        setattr(request, name, value)


def begin_residency(
    *, node: Node, version: Version, desired: Desired, demanded_at: datetime | None = None
) -> Residency:
    """Want a version on a node where it has never been."""
    return Residency.objects.create(
        node=node,
        version=version,
        desired=desired.value,
        state_changed_at=timezone.now(),
        last_demand_at=demanded_at,
    )


def move_desired(residency: Residency, *, was: Desired, to: Desired, **facts: Any) -> None:  # noqa: ANN401
    """Change what is wanted by compare-and-set; that is a new generation. Raises ``StaleState``.

    What isn't wanted in the engine any more is not hot either.
    """
    cold = {} if to is Desired.GPU else {"is_hot": False}
    _update(
        residency,
        {"desired": was.value, "generation": residency.generation},
        {**_FRESH, **cold, "desired": to.value, "generation": residency.generation + 1, **facts},
    )


def once_more(residency: Residency) -> dict[str, Any]:
    """The facts that begin a new generation of the same wish, to be written with ``note`` or ``move_observed``."""
    return {"generation": residency.generation + 1, "command_sent_at": None}


def move_observed(residency: Residency, *, was: Observed, to: Observed, **facts: Any) -> None:  # noqa: ANN401
    """Move what is observed by compare-and-set, and set ``facts`` with it.

    One row is best written once in a transaction: written twice, its foreign keys are checked again, at the very end.

    Raises:
        IllegalTransition: the move is not in the table; never worth a retry.
        StaleState: somebody else moved it first.

    """
    if (was, to) not in OBSERVED_MOVES:
        raise IllegalTransition(_("A residency does not move from %(was)s to %(to)s.") % {"was": was, "to": to})
    _update(
        residency,
        {"observed": was.value, "generation": residency.generation},
        {"observed": to.value, "state_changed_at": timezone.now(), **_TIERS.get(to, {}), **facts},
    )


def note(residency: Residency, **facts: Any) -> None:  # noqa: ANN401
    """Write facts that are no state, within the same generation. Raises ``StaleState``."""
    _update(residency, {"generation": residency.generation}, facts)


def _update(residency: Residency, expected: dict[str, Any], changes: dict[str, Any]) -> None:
    if not Residency.objects.filter(pk=residency.pk, **expected).update(**changes):
        raise StaleState(_("%(residency)s was changed by somebody else meanwhile.") % {"residency": residency})
    for name, value in changes.items():
        setattr(residency, name, value)
