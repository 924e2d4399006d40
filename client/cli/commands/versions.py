"""`versions`, `search`, `show` and `report`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from client.cli.app import JsonCommand
from client.cli.output import who
from client.cli.params import adapter_argument, version_argument
from client.cli.session import Session, pass_session
from client.errors import Conflict, NotFound
from client.i18n import _

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from client.models import ValidationReport, Version
    from client.refs import PairRef, VersionRef

F = TypeVar("F", bound="Callable[..., object]")
_SHORT_DIGEST = 12


def _filters(command: F) -> F:
    """Add the options that narrow a list of versions; they come as `filters`, by the API's names."""
    options = (
        click.option("--state", help=_("Only versions in this state.")),
        click.option("--uploader", metavar="EMAIL", help=_("Only what this person pushed.")),
        click.option("--data", "training_data_digest", metavar="SHA256", help=_("Trained on this data.")),
        click.option("--run", "run_url", metavar="URL", help=_("Made by this run.")),
        click.option("--commit", "git_commit", metavar="HASH", help=_("Made by this commit.")),
        click.option("--parent", "parent_version", metavar="ADAPTER@VERSION", help=_("Trained further from this.")),
        click.option("--metric", metavar="BOUNDS", help=_("Such as eval_loss<2,accuracy>=0.9.")),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _given(filters: Mapping[str, str | None]) -> dict[str, str | int]:
    return {name: value for name, value in filters.items() if value is not None}


@click.command(cls=JsonCommand, help=_("List the versions of an adapter."))
@adapter_argument
@_filters
@pass_session
def versions(session: Session, /, adapter: PairRef, **filters: str | None) -> None:
    """Print one row per version."""
    _print_versions(session, session.client.versions.all(adapter, filters=_given(filters)))


@click.command(cls=JsonCommand, help=_("Find versions of all adapters of a tenant by where they come from."))
@click.argument("tenant")
@_filters
@pass_session
def search(session: Session, /, tenant: str, **filters: str | None) -> None:
    """Print one row per version."""
    _print_versions(session, session.client.versions.search(tenant, filters=_given(filters)))


def _print_versions(session: Session, found: Sequence[Version]) -> None:
    session.out.document({"results": found})
    columns = (
        _("adapter"),
        _("version"),
        _("state"),
        _("rank"),
        _("base revision"),
        _("digest"),
        _("uploader"),
        _("created"),
    )
    rows = (
        (
            v.adapter,
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
            (_("lineage"), [f"{key}: {value}" for key, value in version.lineage.items() if key != "extra"] or "-"),
            *([(_("files removed"), version.purged_at)] if version.purged_at else []),
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
    void = "" if approval.get("current", True) else _(", void")
    return f"{approval.get('reviewer')} ({approval.get('decision')}{void})"


def _report_if_any(session: Session, ref: VersionRef) -> ValidationReport | None:
    """Return the report; a version that wasn't validated yet has none."""
    try:
        return session.client.versions.report(ref)
    except (NotFound, Conflict):
        return None
