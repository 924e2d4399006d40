"""`alias set|show|list|history` and `rollback`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from client.cli.app import JsonCommand, LorekeeperGroup
from client.cli.output import who
from client.cli.params import alias_argument, version_argument
from client.cli.session import Session, pass_session
from client.i18n import _

if TYPE_CHECKING:
    from client.models import Alias
    from client.refs import PairRef, VersionRef


@click.group(cls=LorekeeperGroup, help=_("Stable names and the versions they point at."))
def alias() -> None:
    """Group the alias commands."""


@alias.command("set", help=_("Point an alias at an approved version."))
@alias_argument
@version_argument
@click.option("--expected-revision", type=click.IntRange(0), help=_("Move only if the alias is at this revision."))
@click.option("--reason", default="", help=_("Stands in the history and the audit log."))
@pass_session
def set_alias(session: Session, alias: PairRef, ref: VersionRef, expected_revision: int | None, reason: str) -> None:
    """Move and print the alias."""
    if alias.tenant != ref.tenant:
        message = _("Alias and version must be of one tenant, not of {one} and {other}.")
        raise click.UsageError(message.format(one=alias.tenant, other=ref.tenant))
    _print(session, session.client.aliases.set(alias, ref, expected_revision=expected_revision, reason=reason))


@alias.command("show", help=_("Show what an alias points at."))
@alias_argument
@pass_session
def show_alias(session: Session, alias: PairRef) -> None:
    """Print the alias."""
    _print(session, session.client.aliases.get(alias))


@alias.command("list", help=_("List the aliases of a tenant."))
@click.argument("tenant")
@pass_session
def list_aliases(session: Session, tenant: str) -> None:
    """Print one row per alias."""
    found = session.client.aliases.all(tenant)
    session.out.document({"results": found})
    columns = (_("alias"), _("version"), _("revision"), _("moved"))
    session.out.table(columns, ((f"{a.tenant}/{a.name}", a.target, a.revision, a.updated_at) for a in found))


@alias.command("history", help=_("Show every move of an alias, newest first."))
@alias_argument
@pass_session
def alias_history(session: Session, alias: PairRef) -> None:
    """Print one row per revision."""
    found = session.client.aliases.history(alias)
    session.out.document({"results": found})
    columns = (_("revision"), _("kind"), _("version"), _("before"), _("by"), _("reason"), _("at"))
    rows = (
        (
            row.revision,
            row.kind,
            f"{row.adapter}@{row.version}",
            row.previous_version,
            who(row.actor),
            row.reason,
            row.at,
        )
        for row in found
    )
    session.out.table(columns, rows)


@click.command(cls=JsonCommand, help=_("Point an alias back at the version before; needs no approval."))
@alias_argument
@click.option(
    "--from-revision", type=click.IntRange(1), help=_("The revision to leave; nothing happens if it is left already.")
)
@click.option("--reason", default="", help=_("Stands in the history and the audit log."))
@pass_session
def rollback(session: Session, alias: PairRef, from_revision: int | None, reason: str) -> None:
    """Roll back and print the alias."""
    _print(session, session.client.aliases.rollback(alias, reason=reason, from_revision=from_revision))


def _print(session: Session, found: Alias) -> None:
    session.out.document(found)
    text = _("{tenant}/{name} points at {target} (revision {revision}).")
    session.out.line(text.format(tenant=found.tenant, name=found.name, target=found.target, revision=found.revision))
