"""`versions`, `show` and `report`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from client.cli.app import JsonCommand
from client.cli.output import who
from client.cli.params import adapter_argument, version_argument
from client.cli.session import Session, pass_session
from client.errors import Conflict, NotFound
from client.i18n import _

if TYPE_CHECKING:
    from client.models import ValidationReport, Version
    from client.refs import PairRef, VersionRef

_SHORT_DIGEST = 12


@click.command(cls=JsonCommand, help=_("List the versions of an adapter."))
@adapter_argument
@pass_session
def versions(session: Session, adapter: PairRef) -> None:
    """Print one row per version."""
    found = session.client.versions.all(adapter)
    session.out.document({"results": found})
    columns = (_("version"), _("state"), _("rank"), _("base revision"), _("digest"), _("uploader"), _("created"))
    rows = (
        (
            v.name,
            v.state,
            v.rank,
            v.base_revision,
            (v.root_digest or "-")[:_SHORT_DIGEST],
            who(v.uploader),
            v.created_at,
        )
        for v in found
    )
    session.out.table(columns, rows)


@click.command(cls=JsonCommand, help=_("Show a version: state, files, digests and what validation said."))
@version_argument
@pass_session
def show(session: Session, ref: VersionRef) -> None:
    """Print the version and its report's reasons."""
    version = session.client.versions.get(ref)
    report = _report_if_any(session, ref)
    session.out.document({"version": version, "report": report})
    print_version(session, version)
    session.out.table(
        (_("file"), _("bytes"), _("sha256")), ((file.path, f"{file.size:,}", file.sha256) for file in version.files)
    )
    if report is not None:
        print_report(session, report, only_reasons=True)


@click.command(cls=JsonCommand, help=_("Show the whole validation report of a version."))
@version_argument
@pass_session
def report(session: Session, ref: VersionRef) -> None:
    """Print every check."""
    found = session.client.versions.report(ref)
    session.out.document(found)
    print_report(session, found, only_reasons=False)
    session.out.fields([(name, value) for name, value in found.facts.items()])


def print_state(session: Session, version: Version) -> None:
    """Print the version's reference and state, and the sentence about it if there is one."""
    message = f" ({version.state_message})" if version.state_message else ""
    session.out.line(f"{version.ref}: {version.state}{message}")


def print_version(session: Session, version: Version) -> None:
    """Print what is known about a version."""
    print_state(session, version)
    session.out.fields(
        [
            (_("base model"), f"{version.base_model} {version.base_revision}"),
            (_("digest"), version.root_digest),
            (_("rank"), version.rank),
            (_("target modules"), version.target_modules or "-"),
            (_("engine name"), version.engine_name),
            (_("uploader"), who(version.uploader)),
            (_("created"), version.created_at),
            (_("approvals"), [_approval(approval) for approval in version.approvals] or "-"),
        ]
    )


def print_report(session: Session, found: ValidationReport, *, only_reasons: bool) -> None:
    """Print a report's checks, or only those that fail or warn."""
    checks = found.reasons if only_reasons else found.checks
    session.out.line(_("validation: {verdict}").format(verdict=found.verdict))
    if checks:
        rows = ((check.verdict, check.name, check.code, check.message) for check in checks)
        session.out.table((_("verdict"), _("check"), _("code"), _("reason")), rows)


def _approval(approval: dict[str, object]) -> str:
    return f"{approval.get('reviewer')} ({approval.get('decision')})"


def _report_if_any(session: Session, ref: VersionRef) -> ValidationReport | None:
    """Return the report; a version that wasn't validated yet has none."""
    try:
        return session.client.versions.report(ref)
    except (NotFound, Conflict):
        return None
