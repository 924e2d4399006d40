"""`evictions` and `why`: what left engines and disks, and how one version stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from client.cli.app import JsonCommand
from client.cli.params import version_argument
from client.cli.session import Session, pass_session
from client.i18n import _
from client.resources.evictions import DEFAULT_LIMIT

if TYPE_CHECKING:
    from client.refs import VersionRef
    from client.resources.evictions import Eviction, Placement
    from client.resources.nodes import Residency

_REASONS = ("room", "quota", "ttl", "idle", "drain", "pressure", "withdrawn", "manual", "plan", "rollback")


@click.command(cls=JsonCommand, help=_("List what went to a lower tier lately, and why."))
@click.option("--node", help=_("Of this node alone."))
@click.option("--tenant", help=_("Of this tenant alone."))
@click.option("--adapter", help=_("Of adapters of this name alone."))
@click.option("--version", help=_("Of versions of this name alone."))
@click.option("--reason", type=click.Choice(_REASONS), help=_("For this reason alone."))
@click.option("--limit", type=click.IntRange(1), default=DEFAULT_LIMIT, show_default=True, help=_("How many at most."))
@pass_session
def evictions(session: Session, /, limit: int, **filters: str | None) -> None:
    """Print one row per eviction, the newest first."""
    chosen = {name: value for name, value in filters.items() if value is not None}
    found = session.client.evictions.newest(limit=limit, **chosen)
    session.out.document({"results": found})
    session.out.table(_eviction_columns(), (_eviction_row(eviction) for eviction in found))


@click.command(cls=JsonCommand, help=_("Show where a version is, how much it is asked for, and why it was evicted."))
@version_argument
@pass_session
def why(session: Session, ref: VersionRef) -> None:
    """Print how the version stands, where it is, and its last evictions with what scored them."""
    found = session.client.evictions.explain(ref)
    session.out.document(found)
    session.out.fields(_placement_fields(found))
    shown = (_("node"), _("planned"), _("tier"), _("observed"), _("load ms"), _("message"))
    session.out.table(shown, (_residency_row(residency) for residency in found.nodes))
    session.out.table((*_eviction_columns(), _("factors")), (_explained_row(eviction) for eviction in found.evictions))


def _eviction_columns() -> tuple[str, ...]:
    return (
        _("at"),
        _("version"),
        _("node"),
        _("from"),
        _("to"),
        _("reason"),
        _("policy"),
        _("score"),
        _("would have gone instead"),
        _("asked by"),
    )


def _eviction_row(eviction: Eviction) -> tuple[object, ...]:
    return (
        eviction.at,
        eviction.ref,
        eviction.node,
        eviction.tier,
        eviction.to_tier,
        eviction.reason,
        _policy(eviction),
        _number(eviction.score),
        _runner_up(eviction),
        eviction.asked_by or "",
    )


def _explained_row(eviction: Eviction) -> tuple[object, ...]:
    factors = ", ".join(f"{name} {_number(value)}" for name, value in eviction.factors.items())
    return (*_eviction_row(eviction), factors)


def _residency_row(residency: Residency) -> tuple[object, ...]:
    estimate = _("{tier}?").format(tier=residency.tier) if residency.tier_is_estimate else residency.tier
    return (
        residency.node,
        residency.planned_tier,
        estimate,
        residency.observed,
        residency.load_ms,
        residency.message,
    )


def _placement_fields(found: Placement) -> list[tuple[str, object]]:
    load = found.load
    waits = "" if load is None else f"{load.state} {load.node or ''}".strip()
    return [
        (_("version"), f"{found.tenant}/{found.adapter}@{found.version}"),
        (_("requests per hour"), _number(found.requests_per_hour)),
        (_("requests in all"), found.hits),
        (_("last used"), found.last_used_at),
        (_("load"), waits),
    ]


def _policy(eviction: Eviction) -> str:
    if eviction.policy is None:
        return ""
    return eviction.policy if eviction.policy_number is None else f"{eviction.policy} #{eviction.policy_number}"


def _runner_up(eviction: Eviction) -> str:
    if eviction.runner_up_score is None:
        return ""
    return f"{eviction.runner_up or '-'} ({_number(eviction.runner_up_score)})"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
