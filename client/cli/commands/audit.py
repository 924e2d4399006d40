"""`audit show|export|verify`."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from client.audit import ChainVerdict, verify_export
from client.cli.app import EXIT_REFUSED, LorekeeperGroup
from client.cli.output import plain, who
from client.cli.params import FILE, NEW_PATH
from client.cli.session import Session, pass_session
from client.errors import UnexpectedAnswer
from client.i18n import _
from client.lines import text_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CHUNK_BYTES = 1 << 20


@click.group(cls=LorekeeperGroup, help=_("Read, keep and check the audit log."))
def audit() -> None:
    """Group the audit commands."""


@audit.command("show", help=_("Show a tenant's audit log, oldest first."))
@click.argument("tenant")
@click.option("--after", type=click.IntRange(0), default=0, help=_("Only records behind this number."))
@click.option("--limit", type=click.IntRange(1), help=_("At most so many records."))
@pass_session
def show_audit(session: Session, tenant: str, after: int, limit: int | None) -> None:
    """Print one row per record."""
    found = []
    for record in session.client.audit.records(tenant, after_seq=after):
        found.append(record)
        if limit is not None and len(found) >= limit:
            break
    session.out.document({"results": found})
    columns = (_("seq"), _("at"), _("by"), _("action"), _("object"), _("reason"))
    session.out.table(columns, ((r.seq, r.at, who(r.actor), r.action, who(r.object), r.reason) for r in found))


@audit.command("export", help=_("Write the whole log as JSON Lines, to check it offline."))
@click.argument("tenant")
@click.option("--output", "-o", type=NEW_PATH, help=_("A file to write; default: standard output."))
@pass_session
def export_audit(session: Session, tenant: str, output: Path | None) -> None:
    """Write the export; with --json and no file, as one document."""
    with session.client.audit.export(tenant) as lines:
        if output is not None:
            _export_to_file(session, lines, output)
        elif session.json_mode:
            session.out.document({"results": [_record(line) for line in lines if line.strip()]})
        else:
            for line in lines:
                click.echo(line)


@audit.command("verify", help=_("Check a log's hash chain; without --file the log is fetched first."))
@click.argument("tenant")
@click.option("--file", "export", type=FILE, help=_("An export made earlier; needs no server."))
@click.option("--expect-head", help=_("A head hash noted earlier: shows a log that was cut off."))
@pass_session
def verify_audit(session: Session, tenant: str, export: Path | None, expect_head: str | None) -> int:
    """Print the verdict; end with 1 at the first bad record."""
    seen = _HeadWatch(expect_head.lower() if expect_head else None)
    with _lines(session, tenant, export) as lines:
        verdict = verify_export(seen.watch(lines), chain=tenant)
    if export is not None and verdict.intact and not verdict.records:
        raise click.BadParameter(_("{path} holds no records.").format(path=export), param_hint="--file")
    cut_off = verdict.intact and not seen.found
    session.out.document(_verdict_document(verdict, cut_off=cut_off))
    if verdict.first_bad is not None:
        text = _("Line {line}, record {seq}: {reason}. The {good} records before it are good.")
        bad = verdict.first_bad
        seq = _("unknown") if bad.seq is None else bad.seq
        session.out.note(text.format(line=bad.line, seq=seq, reason=bad.message, good=verdict.records))
        return EXIT_REFUSED
    if cut_off:
        session.out.note(_("The chain holds, but no record has the expected hash: the log was cut off or replaced."))
        return EXIT_REFUSED
    text = _("The audit log of {tenant} is intact: {records} records, head {head}.")
    session.out.line(text.format(tenant=tenant, records=verdict.records, head=verdict.head))
    return 0


class _HeadWatch:
    """Looks for one hash among the records that pass by."""

    def __init__(self, expected: str | None) -> None:
        self._needle = None if expected is None else f'"{expected}"'
        self.found = expected is None

    def watch(self, lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            if self._needle is not None and self._needle in line:
                self.found = True
            yield line


@contextmanager
def _lines(session: Session, tenant: str, export: Path | None) -> Iterator[Iterator[str]]:
    if export is None:
        with session.client.audit.export(tenant) as lines:
            yield lines
        return
    with export.open("rb") as stream:
        yield text_lines(iter(lambda: stream.read(_CHUNK_BYTES), b""))


def _verdict_document(verdict: ChainVerdict, *, cut_off: bool) -> dict[str, object]:
    document: dict[str, object] = {"intact": verdict.intact and not cut_off}
    data = plain(verdict)
    if isinstance(data, dict):
        document.update(data)
    if verdict.first_bad is not None:
        document["error"] = {"code": f"audit_{verdict.first_bad.code}", "detail": verdict.first_bad.message}
    elif cut_off:
        document["error"] = {"code": "audit_cut_off", "detail": _("No record has the expected hash.")}
    return document


def _export_to_file(session: Session, lines: Iterator[str], output: Path) -> None:
    count = 0
    with output.open("x", encoding="utf-8", newline="\n") as stream:
        for line in lines:
            stream.write(f"{line}\n")
            count += 1
    session.out.document({"path": output, "records": count})
    session.out.note(_("{count} records written to {path}.").format(count=count, path=output))


def _record(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError as error:
        raise UnexpectedAnswer(_("The export has a line that isn't JSON.")) from error
