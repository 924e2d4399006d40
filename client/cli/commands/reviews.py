"""`approve`, `decline`, `yank` and `revoke`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from client.cli.app import JsonCommand
from client.cli.commands.versions import print_state
from client.cli.params import version_argument
from client.cli.session import Session, pass_session
from client.errors import LorekeeperError
from client.i18n import _

if TYPE_CHECKING:
    from client.models import Version
    from client.refs import VersionRef

_reason = click.option("--reason", required=True, help=_("Why; it stands in the audit log."))


class NothingToApprove(LorekeeperError):
    """The version has no digest yet, or another one than the reviewer looked at."""

    code = "nothing_to_approve"


@click.command(cls=JsonCommand, help=_("Approve exactly the files that a version has now."))
@version_argument
@click.option("--comment", default="", help=_("Stands in the audit log."))
@click.option("--digest", help=_("The digest you reviewed; refused if the version has another one."))
@pass_session
def approve(session: Session, ref: VersionRef, comment: str, digest: str | None) -> None:
    """Fetch the version, show its digest, send exactly that."""
    version = session.client.versions.get(ref)
    if not version.root_digest:
        message = _("{ref} has no digest yet (state {state}); wait until it is a candidate.")
        raise NothingToApprove(message.format(ref=ref, state=version.state))
    if digest and digest.lower() != version.root_digest:
        message = _("{ref} has digest {found}, not the reviewed {digest}; look at it again.")
        raise NothingToApprove(message.format(ref=ref, found=version.root_digest, digest=digest))
    session.out.note(_("Approving {ref} with digest {digest}.").format(ref=ref, digest=version.root_digest))
    _print(session, session.client.versions.approve(ref, digest=version.root_digest, comment=comment))


@click.command(cls=JsonCommand, help=_("Decline a candidate."))
@version_argument
@_reason
@pass_session
def decline(session: Session, ref: VersionRef, reason: str) -> None:
    """Decline and print the state."""
    _print(session, session.client.versions.decline(ref, reason=reason))


@click.command(cls=JsonCommand, help=_("Take a version out of new releases; it goes on serving where it serves."))
@version_argument
@_reason
@pass_session
def yank(session: Session, ref: VersionRef, reason: str) -> None:
    """Yank and print the state."""
    _print(session, session.client.versions.yank(ref, reason=reason))


@click.command(cls=JsonCommand, help=_("Stop serving a version now, everywhere, for good."))
@version_argument
@_reason
@pass_session
def revoke(session: Session, ref: VersionRef, reason: str) -> None:
    """Revoke and print the state."""
    _print(session, session.client.versions.revoke(ref, reason=reason))


def _print(session: Session, version: Version) -> None:
    session.out.document(version)
    print_state(session, version)
