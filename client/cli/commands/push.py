"""`push`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from client.cli.app import EXIT_REFUSED, JsonCommand
from client.cli.commands.versions import print_report, print_state
from client.cli.output import plain
from client.cli.params import FILE, FOLDER, adapter_argument
from client.cli.progress import transfer_progress
from client.cli.session import Session, pass_session
from client.i18n import _, ngettext
from client.refs import PairRef, VersionRef

if TYPE_CHECKING:
    from pathlib import Path

    from client.models import ValidationReport, Version
    from client.push import PushResult

DEFAULT_WAIT_S = 600.0


@click.command(
    cls=JsonCommand, help=_("Push a folder as a new version. Run it again to continue a push that was cut off.")
)
@click.argument("folder", type=FOLDER)
@adapter_argument
@click.option("--version", "name", help=_("The version's name; default: date and counter, given by the server."))
@click.option("--base-revision", required=True, metavar="LABEL", help=_("The base model revision it was trained on."))
@click.option("--lineage", type=FILE, help=_("A JSON file about where it comes from (run, data, commit)."))
@click.option("--workers", type=click.IntRange(1, 16), default=4, show_default=True, help=_("Uploads at a time."))
@click.option("--wait", is_flag=True, help=_("Wait for the validation and show its reasons."))
@click.option(
    "--timeout", type=click.FloatRange(min=0), default=DEFAULT_WAIT_S, show_default=True, help=_("Seconds to wait.")
)
@pass_session
def push(
    session: Session,
    folder: Path,
    adapter: PairRef,
    *,
    name: str | None,
    base_revision: str,
    lineage: Path | None,
    workers: int,
    wait: bool,
    timeout: float,
) -> int:
    """Push, and with --wait end with 1 if the version is rejected."""
    with transfer_progress(quiet=session.json_mode) as progress:
        result = session.client.push(
            folder,
            adapter,
            base_revision=base_revision,
            name=name,
            lineage=_read_lineage(lineage),
            progress=progress,
            workers=workers,
        )
    _print_moved(session, result)
    ref = VersionRef(adapter.tenant, adapter.name, result.version.name)
    version = session.client.versions.wait(ref, timeout_s=timeout) if wait else result.version
    report = session.client.versions.report(ref) if wait else None
    return _finish(session, result, version, report)


def _finish(session: Session, result: PushResult, version: Version, report: ValidationReport | None) -> int:
    rejected = version.state == "rejected"
    document: dict[str, object] = {
        "version": version,
        "files": result.files,
        "moved_files": result.moved_files,
        "moved_bytes": result.moved_bytes,
        "resumed": result.resumed,
    }
    if report is not None:
        document["report"] = {**_as_dict(report), "reasons": plain(report.reasons)}
    if rejected:
        detail = "; ".join(check.message for check in report.reasons) if report else version.state_message
        document["error"] = {"code": "version_rejected", "detail": detail or version.state_message}
    session.out.document(document)
    print_state(session, version)
    if report is not None:
        print_report(session, report, only_reasons=True)
    return EXIT_REFUSED if rejected else 0


def _as_dict(report: ValidationReport) -> dict[str, object]:
    data = plain(report)
    return data if isinstance(data, dict) else {}


def _print_moved(session: Session, result: PushResult) -> None:
    text = ngettext(
        "{moved} of {files} file moved, {size} bytes.", "{moved} of {files} files moved, {size} bytes.", result.files
    )
    session.out.note(text.format(moved=result.moved_files, files=result.files, size=f"{result.moved_bytes:,}"))


def _read_lineage(path: Path | None) -> dict[str, object] | None:
    if path is None:
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise click.BadParameter(_("{path} isn't JSON.").format(path=path), param_hint="--lineage") from error
    if not isinstance(data, dict):
        raise click.BadParameter(_("{path} isn't a JSON object.").format(path=path), param_hint="--lineage")
    return data
