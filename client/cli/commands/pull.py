"""`pull` and `verify`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from client.cli.app import JsonCommand
from client.cli.params import FILE, FOLDER, NEW_PATH, VersionParam, version_argument
from client.cli.progress import transfer_progress
from client.cli.session import Session, pass_session
from client.cli.signing import Verified, find_trusted_keys, known_trusted_keys, verify_pulled
from client.i18n import _

if TYPE_CHECKING:
    from pathlib import Path

    from client.models import Signature
    from client.refs import VersionRef


@click.command(cls=JsonCommand, help=_("Pull a signed version into a new folder, checking every digest."))
@version_argument
@click.argument("folder", type=NEW_PATH)
@click.option("--key", type=FILE, help=_("Public keys to check it with; default: those this machine trusts."))
@pass_session
def pull(session: Session, ref: VersionRef, folder: Path, key: Path | None) -> None:
    """Pull all of it or nothing."""
    trusted = known_trusted_keys(session.environ, key)
    check = partial(_check, trusted, ref) if trusted else None
    with transfer_progress(quiet=session.json_mode) as progress:
        result = session.client.puller(progress).pull(ref, folder, check=check)
    session.out.document(
        {**_pulled(result.folder, ref), "moved_bytes": result.moved_bytes, "verified": check is not None}
    )
    session.out.line(_("{ref} lies in {folder}.").format(ref=ref, folder=folder))
    if check is None:
        session.out.note(_("Check its signature with `lorekeeper verify {folder} --key PUB`.").format(folder=folder))


@click.command(cls=JsonCommand, help=_("Check a pulled folder against its signature, offline."))
@click.argument("folder", type=FOLDER)
@click.option("--key", type=FILE, help=_("Public keys (PEM, or a keys.json); default: those this machine trusts."))
@click.option("--expect", type=VersionParam(), metavar=VersionParam.name, help=_("The version it has to be."))
@pass_session
def verify(session: Session, folder: Path, key: Path | None, expect: VersionRef | None) -> None:
    """Print what the signatures say the folder holds."""
    verified = verify_pulled(folder, find_trusted_keys(session.environ, key), expected=expect)
    session.out.document({"folder": folder, "verified": True, "claims": verified})
    session.out.line(_("{folder} is {ref}, complete and signed.").format(folder=folder, ref=verified.ref))
    session.out.fields(
        [
            (_("base model"), f"{verified.base_model} {verified.base_revision}"),
            (_("rank"), verified.rank),
            (_("digest"), verified.root_digest),
            (_("approvals"), len(verified.approvals)),
            (_("signed"), f"{verified.signed_at} {verified.key_id}"),
        ]
    )


def _pulled(folder: Path, ref: VersionRef) -> dict[str, object]:
    return {"version": str(ref), "folder": folder}


def _check(key: Path, ref: VersionRef, folder: Path, _signature: Signature) -> Verified:
    return verify_pulled(folder, key, expected=ref)
