"""`alias set|show|split|list|history|at|protect|unprotect|share|unshare|shared` and `rollback`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from client.cli.app import EXIT_REFUSED, JsonCommand, LorekeeperGroup
from client.cli.output import who
from client.cli.params import PERCENT, TIME, VersionParam, alias_argument, utc, version_argument
from client.cli.session import Session, pass_session
from client.i18n import _

if TYPE_CHECKING:
    from datetime import datetime

    from client.models import Alias, AliasProtection, AliasSplit
    from client.refs import PairRef, VersionRef
    from client.resources.aliases import AliasRevision


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
    _require_tenant(alias, ref)
    _print(session, session.client.aliases.set(alias, ref, expected_revision=expected_revision, reason=reason))


@alias.command("show", help=_("Show what an alias points at."))
@alias_argument
@pass_session
def show_alias(session: Session, alias: PairRef) -> None:
    """Print the alias."""
    _print(session, session.client.aliases.get(alias))


@alias.command("split", help=_("Send a share of an alias's requests to a candidate, or mirror a share to a shadow."))
@alias_argument
@click.argument("candidate", type=VersionParam(), metavar=f"[{VersionParam.name}]", required=False)
@click.option("--percent", type=PERCENT, default=0.0, help=_("Of the keys, to the candidate; two digits count."))
@click.option("--allow", multiple=True, metavar="TENANT", help=_("Always gets the candidate."))
@click.option("--deny", multiple=True, metavar="TENANT", help=_("Never gets the candidate."))
@click.option("--shadow", type=VersionParam(), help=_("A version whose answers are compared and thrown away."))
@click.option("--shadow-percent", type=PERCENT, default=0.0, help=_("Of the requests, mirrored to the shadow."))
@click.option("--clear", is_flag=True, help=_("End the split: the alias's own version answers everything."))
@click.option("--reason", default="", help=_("Stands in the audit log."))
@pass_session
def split_alias(
    session: Session,
    alias: PairRef,
    candidate: VersionRef | None,
    *,
    percent: float,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    shadow: VersionRef | None,
    shadow_percent: float,
    clear: bool,
    reason: str,
) -> None:
    """Split the alias, or end its split, and print it."""
    if clear == (candidate is not None):
        raise click.UsageError(_("Name a candidate, or --clear."))
    if candidate is None:
        _print(session, session.client.aliases.unsplit(alias, reason=reason))
        return
    for named in filter(None, (candidate, shadow)):
        _require_tenant(alias, named)
    split = session.client.aliases.split(
        alias,
        candidate,
        basis_points=round(percent * 100),
        allow=allow,
        deny=deny,
        shadow=shadow,
        shadow_basis_points=round(shadow_percent * 100),
        reason=reason,
    )
    _print(session, split)


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


@alias.command("at", help=_("Show what an alias stood for at a time."))
@alias_argument
@click.argument("when", type=TIME, metavar="TIME")
@pass_session
def alias_at(session: Session, alias: PairRef, when: datetime) -> int:
    """Print target, split and release of that time."""
    found = session.client.aliases.at(alias, utc(when))
    session.out.document(found)
    if found is None:
        session.out.note(_("{alias} was made later.").format(alias=alias))
        return EXIT_REFUSED
    _print_revision(session, alias, found)
    return 0


@alias.command("protect", help=_("Say who may move an alias, and that only a release does."))
@alias_argument
@click.option(
    "--mover", "movers", multiple=True, metavar="E-MAIL", help=_("Who alone may; default: everybody by role.")
)
@click.option("--directly", is_flag=True, help=_("They may move it without a release, too."))
@pass_session
def protect_alias(session: Session, alias: PairRef, movers: tuple[str, ...], *, directly: bool) -> None:
    """Protect the alias and print how."""
    found = session.client.aliases.protect(alias, movers=movers, needs_release=not directly)
    session.out.document(found)
    session.out.line(_protection_line(str(alias), found))


@alias.command("unprotect", help=_("Let everybody whose role allows it move an alias directly."))
@alias_argument
@pass_session
def unprotect_alias(session: Session, alias: PairRef) -> None:
    """End the protection."""
    session.client.aliases.unprotect(alias)
    session.out.document({"protection": None})
    session.out.line(_("{alias} is not protected.").format(alias=alias))


@alias.command("share", help=_("Let another tenant call an alias (platform admin); without one, list who may."))
@alias_argument
@click.argument("tenant", required=False)
@click.option("--as", "name", default="", metavar="NAME", help=_("The name it is called by there; default: its own."))
@click.option("--reason", default="", help=_("Stands in the audit log."))
@pass_session
def share_alias(session: Session, alias: PairRef, tenant: str | None, *, name: str, reason: str) -> None:
    """Share the alias, or print one row per tenant that may call it."""
    if tenant is not None:
        made = session.client.aliases.share(alias, tenant, name=name, reason=reason)
        session.out.document(made)
        text = _("{tenant} may call {alias} as {name}.")
        session.out.line(text.format(tenant=made.tenant, alias=alias, name=made.name))
        return
    found = session.client.aliases.grants(alias)
    session.out.document({"results": found})
    session.out.table((_("tenant"), _("name"), _("since")), ((g.tenant, g.name, g.granted_at) for g in found))


@alias.command("unshare", help=_("Let another tenant call an alias no more (platform admin)."))
@alias_argument
@click.argument("tenant")
@click.option("--reason", default="", help=_("Stands in the audit log."))
@pass_session
def unshare_alias(session: Session, alias: PairRef, tenant: str, reason: str) -> None:
    """End the grant."""
    session.client.aliases.unshare(alias, tenant, reason=reason)
    session.out.document({"tenant": tenant, "grant": None})
    session.out.line(_("{tenant} may not call {alias}.").format(tenant=tenant, alias=alias))


@alias.command("shared", help=_("List the aliases of others that a tenant may call."))
@click.argument("tenant")
@pass_session
def shared_aliases(session: Session, tenant: str) -> None:
    """Print one row per alias."""
    found = session.client.aliases.shared_with(tenant)
    session.out.document({"results": found})
    session.out.table((_("name"), _("since")), ((grant.name, grant.granted_at) for grant in found))


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


def _require_tenant(alias: PairRef, ref: VersionRef) -> None:
    if alias.tenant != ref.tenant:
        message = _("Alias and version must be of one tenant, not of {one} and {other}.")
        raise click.UsageError(message.format(one=alias.tenant, other=ref.tenant))


def _print(session: Session, found: Alias) -> None:
    session.out.document(found)
    text = _("{tenant}/{name} points at {target} (revision {revision}).")
    session.out.line(text.format(tenant=found.tenant, name=found.name, target=found.target, revision=found.revision))
    split = found.split
    if split is not None:
        text = _("{candidate} answers {percent:g} % of its requests.")
        candidate = f"{found.tenant}/{split.adapter}@{split.version}"
        session.out.line(text.format(candidate=candidate, percent=split.basis_points / 100))
    if split is not None and split.shadow_version is not None:
        text = _("{shadow} gets a copy of {percent:g} % of them.")
        shadow = f"{found.tenant}/{split.shadow_adapter}@{split.shadow_version}"
        session.out.line(text.format(shadow=shadow, percent=split.shadow_basis_points / 100))
    if found.protection is not None:
        session.out.line(_protection_line(f"{found.tenant}/{found.name}", found.protection))


def _protection_line(alias: str, protection: AliasProtection) -> str:
    who_may = ", ".join(protection.movers) or _("everybody whose role allows it")
    how = _("by releases alone") if protection.needs_release else _("directly or by releases")
    return _("{alias} is protected: {people} may move it, {how}.").format(alias=alias, people=who_may, how=how)


def _print_revision(session: Session, alias: PairRef, found: AliasRevision) -> None:
    interval = next(iter(found.intervals), None)
    target = f"{alias.tenant}/{found.adapter}@{found.version}"
    rows: list[tuple[str, object]] = [(_("version"), target), (_("revision"), f"{found.revision} ({found.kind})")]
    rows += [(_("moved by"), who(found.actor)), (_("reason"), found.reason)]
    if found.revoked_at is not None:
        rows.append((_("revoked"), found.revoked_at))
    if interval is not None:
        rows += [(_("from"), interval.valid_from), (_("until"), interval.valid_to or _("now"))]
    if interval is not None and interval.split is not None:
        rows += _split_rows(alias, interval.split)
    if interval is not None and interval.release is not None:
        rows.append((_("release"), interval.release))
    session.out.fields(rows)


def _split_rows(alias: PairRef, split: AliasSplit) -> list[tuple[str, object]]:
    candidate = f"{alias.tenant}/{split.adapter}@{split.version}"
    rows: list[tuple[str, object]] = [(_("candidate"), f"{candidate}, {split.basis_points / 100:g} %")]
    if split.revoked_at is not None:
        rows.append((_("candidate revoked"), split.revoked_at))
    if split.allow:
        rows.append((_("always"), ", ".join(split.allow)))
    if split.deny:
        rows.append((_("never"), ", ".join(split.deny)))
    if split.shadow_version is not None:
        shadow = f"{alias.tenant}/{split.shadow_adapter}@{split.shadow_version}"
        rows.append((_("shadow"), f"{shadow}, {split.shadow_basis_points / 100:g} %"))
    return rows
