"""`usage` and `trace export`: what request records say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click

from client.cli.app import JsonCommand, LorekeeperGroup
from client.cli.params import NEW_PATH, TIME, utc
from client.cli.session import Session, pass_session
from client.i18n import _
from client.resources.usage import By

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from client.resources.usage import UsageFigures


def _span(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the two options that bound a time."""
    since = click.option("--since", type=TIME, help=_("From then on (UTC); default: the day before the end."))
    until = click.option("--until", type=TIME, help=_("Up to then (UTC); default: now."))
    return since(until(command))


@click.command(cls=JsonCommand, help=_("Show what a tenant asked for: requests, tokens, cost, failures, times, hits."))
@click.argument("tenant")
@click.option("--by", type=click.Choice(get_args(By)), default="alias", show_default=True, help=_("Broken down by."))
@_span
@pass_session
def usage(session: Session, tenant: str, by: By, since: datetime | None, until: datetime | None) -> None:
    """Print one row per alias, version or day, and the whole."""
    found = session.client.usage.of(tenant, by=by, since=_utc(since), until=_utc(until))
    session.out.document(found)
    rows = [_row(group.name or "-", group) for group in found.groups]
    session.out.table(_columns(), [*rows, _row(_("all"), found.total)])
    if found.left_out:
        session.out.note(_("{count} smaller ones are left out.").format(count=found.left_out))


@click.group(cls=LorekeeperGroup, help=_("Requests of the past."))
def trace() -> None:
    """Group the trace commands."""


@trace.command("export", help=_("Write the requests of a time as CSV, to replay them (platform admin)."))
@click.option("--base-model", help=_("For versions of this base model alone; a node serves one."))
@click.option("--output", "-o", type=NEW_PATH, help=_("A file to write; default: standard output."))
@_span
@pass_session
def export_trace(
    session: Session, base_model: str | None, output: Path | None, since: datetime | None, until: datetime | None
) -> None:
    """Write the trace."""
    with session.client.usage.trace(base_model=base_model, since=_utc(since), until=_utc(until)) as lines:
        if output is not None:
            _write(session, lines, output)
            return
        for line in lines:
            click.echo(line)


def _write(session: Session, lines: Iterator[str], output: Path) -> None:
    count = -1
    with output.open("x", encoding="utf-8", newline="\n") as stream:
        for line in lines:
            stream.write(f"{line}\n")
            count += 1
    session.out.document({"path": output, "requests": count})
    session.out.note(_("{count} requests written to {path}.").format(count=count, path=output))


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else utc(at)


def _columns() -> tuple[str, ...]:
    return (
        _("what"),
        _("requests"),
        _("failed"),
        _("fallbacks"),
        _("prompt tokens"),
        _("answer tokens"),
        _("engine s"),
        _("p50 ms"),
        _("p95 ms"),
        _("p99 ms"),
        _("on GPU"),
    )


def _row(name: str, figures: UsageFigures) -> tuple[object, ...]:
    ttft = figures.ttft_ms or {}
    return (
        name,
        figures.requests,
        figures.failed,
        figures.fallbacks,
        figures.prompt_tokens,
        figures.completion_tokens,
        f"{figures.engine_ms / 1000:.1f}",
        *(ttft.get(percentile, "") for percentile in ("p50", "p95", "p99")),
        "" if figures.gpu_hit_rate is None else f"{figures.gpu_hit_rate:.1%}",
    )
