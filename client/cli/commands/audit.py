"""`audit show|export|checkpoints|verify`."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from client.audit import ChainVerdict, read_checkpoints, verify_export
from client.audit.records import read_link
from client.cli.app import EXIT_REFUSED, LorekeeperGroup
from client.cli.output import plain, who
from client.cli.params import FILE, NEW_PATH
from client.cli.session import Session, pass_session
from client.errors import SignatureRefused, UnexpectedAnswer
from client.i18n import _
from client.lines import text_lines
from registry.signing.errors import KeyFileError
from registry.signing.keys import TrustedKeys

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK_BYTES = 1 << 20
_PLACE = click.Path(exists=True, path_type=Path)


@click.group(cls=LorekeeperGroup, help=_("Read, keep and check the audit log. TENANT may be `platform`."))
def audit() -> None:
    """Group the audit commands."""


@audit.command("show", help=_("Show a tenant's audit log, oldest first."))
@click.argument("tenant")
@click.option("--after", type=click.IntRange(0), default=0, help=_("Only records behind this number."))
@click.option("--action", help=_("Only records with this tag, or beginning like it."))
@click.option("--actor", help=_("Only what this person (e-mail) or token (prefix) did."))
@click.option("--limit", type=click.IntRange(1), help=_("At most so many records."))
@pass_session
def show_audit(
    session: Session, tenant: str, after: int, action: str | None, actor: str | None, limit: int | None
) -> None:
    """Print one row per record."""
    found = []
    for record in session.client.audit.records(tenant, after_seq=after, action=action, actor=actor):
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


@audit.command("checkpoints", help=_("Fetch the signed checkpoints of a log into a folder, to check it offline."))
@click.argument("tenant")
@click.argument("folder", type=NEW_PATH)
@pass_session
def fetch_checkpoints(session: Session, tenant: str, folder: Path) -> None:
    """Write one file per checkpoint; those that are there already stay."""
    folder.mkdir(parents=True, exist_ok=True)
    # When a key was revoked, its last record is signed again: the newest of a record is the one that is handed out.
    found = list({checkpoint.seq: checkpoint for checkpoint in session.client.audit.checkpoints(tenant)}.values())
    for checkpoint in found:
        path = folder / f"{checkpoint.seq:016d}-{checkpoint.key_id[:16]}.json"
        if not path.exists():
            path.write_bytes(session.client.audit.checkpoint(tenant, checkpoint.seq))
    session.out.document({"folder": folder, "results": found})
    session.out.line(
        _("{count} checkpoints of {tenant} lie in {folder}.").format(count=len(found), tenant=tenant, folder=folder)
    )


@audit.command("verify", help=_("Check a log's hash chain: of an export made earlier, or fetched now."))
@click.argument("log", metavar=_("EXPORT.jsonl|TENANT"))
@click.option("--file", "export", type=FILE, help=_("An export that has to be of TENANT's log; needs no server."))
@click.option(
    "--checkpoint",
    "checkpoints",
    type=_PLACE,
    multiple=True,
    help=_("A signed checkpoint, or a folder of them; several times if need be. Shows what was cut off or replaced."),
)
@click.option("--key", type=FILE, help=_("Public keys to trust, for the checkpoints."))
@click.option("--expect-head", help=_("A head hash noted earlier: shows a log that was cut off."))
@pass_session
def verify_audit(
    session: Session,
    log: str,
    export: Path | None,
    checkpoints: tuple[Path, ...],
    key: Path | None,
    expect_head: str | None,
) -> int:
    """Print the verdict; end with 1 at the first bad record."""
    tenant, export = _named(log, export)
    if checkpoints and key is None:
        raise click.UsageError(_("--checkpoint needs --key: the public keys that you trust."))
    signed = read_checkpoints(checkpoints, _trusted(key), chain=tenant) if key is not None else ()
    seen = _HeadWatch(expect_head.lower() if expect_head else None)
    with _lines(session, tenant, export) as lines:
        verdict = verify_export(seen.watch(lines), chain=tenant, checkpoints=signed)
    if export is not None and verdict.intact and not verdict.records:
        raise click.BadParameter(_("{path} holds no records.").format(path=export), param_hint="EXPORT.jsonl")
    return _tell(session, verdict, cut_off=verdict.intact and not seen.found)


def _named(log: str, export: Path | None) -> tuple[str | None, Path | None]:
    """A tenant's name has neither a dot nor a slash; every other text is a file. Of a file alone any log will do."""
    if export is not None or not ({".", "/", "\\"} & set(log)):
        return log, export
    path = Path(log)
    if not path.is_file():
        raise click.BadParameter(_("{path} is not a file.").format(path=log), param_hint="EXPORT.jsonl")
    return None, path


def _trusted(key: Path) -> TrustedKeys:
    try:
        return TrustedKeys.from_text(key.read_text(encoding="utf-8", errors="replace"))
    except KeyFileError as error:
        raise SignatureRefused(_("{path} holds no keys: {reason}.").format(path=key, reason=error)) from error


def _tell(session: Session, verdict: ChainVerdict, *, cut_off: bool) -> int:
    session.out.document(_verdict_document(verdict, cut_off=cut_off))
    bad = verdict.first_bad
    if bad is not None:
        text = _("Line {line}, record {seq}: {happened}: {reason}. The {good} records before it are good.")
        seq = _("unknown") if bad.seq is None else bad.seq
        told = {"happened": bad.happened.upper(), "reason": bad.message, "good": verdict.records}
        session.out.note(text.format(line=bad.line, seq=seq, **told))
        return EXIT_REFUSED
    if cut_off:
        session.out.note(_("The chain holds, but no record has the expected hash: the log was cut off or replaced."))
        return EXIT_REFUSED
    text = _("The audit log of {tenant} is intact: {records} records, head {head}.")
    session.out.line(text.format(tenant=verdict.chain, records=verdict.records, head=verdict.head))
    _tell_of_checkpoints(session, verdict)
    return 0


def _tell_of_checkpoints(session: Session, verdict: ChainVerdict) -> None:
    if verdict.checkpoints:
        text = _("{count} signed checkpoints agree, the last of them at record {seq}.")
        session.out.line(text.format(count=verdict.checkpoints, seq=verdict.signed_to))
    else:
        session.out.note(_("Without a signed checkpoint (--checkpoint) an end that was cut off can't be seen."))


class _HeadWatch:
    """Looks for one hash among those of the records that pass by."""

    def __init__(self, expected: str | None) -> None:
        self._expected = expected
        self.found = expected is None

    def watch(self, lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            # A record may hold the text elsewhere, too: whoever writes a new log can put it there.
            if self._expected is not None and self._expected in line and read_link(1, line).hash == self._expected:
                self.found = True
            yield line


@contextmanager
def _lines(session: Session, tenant: str | None, export: Path | None) -> Iterator[Iterator[str]]:
    if export is None:
        with session.client.audit.export(str(tenant)) as lines:
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
