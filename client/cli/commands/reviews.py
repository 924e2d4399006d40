"""`inbox`, `review`, `comment`, `approve`, `decline`, `break-glass`, `yank`, `revoke` and `holders`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from client.cli.app import JsonCommand
from client.cli.commands.versions import print_state
from client.cli.output import who
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


@click.command(cls=JsonCommand, help=_("List what you can approve now."))
@pass_session
def inbox(session: Session) -> None:
    """Print one row per candidate."""
    found = session.client.versions.inbox()
    session.out.document({"results": found})
    columns = (_("version"), _("rank"), _("uploader"), _("created"), _("approvals"), _("missing"))
    rows = (
        (v.ref, v.rank, who(v.uploader), v.created_at, f"{s.given}/{s.required}", s.missing_people or "-")
        for v in found
        if (s := v.review) is not None
    )
    session.out.table(columns, rows)


@click.command(cls=JsonCommand, help=_("Show where the review of a version stands, and what was said of it."))
@version_argument
@pass_session
def review(session: Session, ref: VersionRef) -> None:
    """Print approvals and comments."""
    found = session.client.versions.review(ref)
    comments = session.client.versions.comments(ref)
    session.out.document({"review": found, "comments": comments})
    session.out.line(
        _("{ref}: {given} of {required} approvals").format(ref=ref, given=found.given, required=found.required)
    )
    if found.missing_people:
        session.out.line(_("missing: {people}").format(people=", ".join(found.missing_people)))
    columns = (_("reviewer"), _("at"), _("counts"), _("comment"))
    session.out.table(columns, ((a.reviewer, a.at, a.void or _("yes"), a.comment) for a in found.approvals))
    for each in comments:
        session.out.line(f"{each.at} {each.author}: {each.text}")


@click.command(cls=JsonCommand, help=_("Say something in the review of a version."))
@version_argument
@click.argument("text")
@pass_session
def comment(session: Session, ref: VersionRef, text: str) -> None:
    """Write the comment."""
    written = session.client.versions.comment(ref, text)
    session.out.document(written)
    session.out.line(f"{written.at} {written.author}: {written.text}")


@click.command(cls=JsonCommand, help=_("Approve exactly the files and the report that a version has now."))
@version_argument
@click.option("--comment", default="", help=_("Stands in the audit log."))
@click.option("--digest", help=_("The digest you reviewed; refused if the version has another one."))
@pass_session
def approve(session: Session, ref: VersionRef, comment: str, digest: str | None) -> None:
    """Fetch the version, show its digest, send exactly that."""
    version = _looked_at(session, ref, digest)
    session.out.note(_("Approving {ref} with digest {digest}.").format(ref=ref, digest=version.root_digest))
    approved = session.client.versions.approve(
        ref, digest=version.root_digest or "", validation_digest=version.validation_digest, comment=comment
    )
    _print(session, approved)
    if approved.state == "candidate":
        standing = session.client.versions.review(ref)
        session.out.note(
            _("Noted: {given} of {required} approvals.").format(given=standing.given, required=standing.required)
        )


@click.command("break-glass", cls=JsonCommand, help=_("Approve alone as a platform admin, against the policy."))
@version_argument
@_reason
@click.option("--digest", help=_("The digest you looked at; refused if the version has another one."))
@pass_session
def break_glass(session: Session, ref: VersionRef, reason: str, digest: str | None) -> None:
    """Fetch the version, show its digest, send exactly that."""
    version = _looked_at(session, ref, digest)
    session.out.note(_("Breaking the glass for {ref}: it will stand in the audit logs.").format(ref=ref))
    approved = session.client.versions.break_glass(
        ref, digest=version.root_digest or "", validation_digest=version.validation_digest, reason=reason
    )
    _print(session, approved)


def _looked_at(session: Session, ref: VersionRef, digest: str | None) -> Version:
    """Return the version, if it has a digest, and the one that was reviewed."""
    version = session.client.versions.get(ref)
    if not version.root_digest:
        message = _("{ref} has no digest yet (state {state}); wait until it is a candidate.")
        raise NothingToApprove(message.format(ref=ref, state=version.state))
    if digest and digest.lower() != version.root_digest:
        message = _("{ref} has digest {found}, not the reviewed {digest}; look at it again.")
        raise NothingToApprove(message.format(ref=ref, found=version.root_digest, digest=digest))
    return version


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
    """Revoke, and print the state and who still holds it."""
    revoked = session.client.versions.revoke(ref, reason=reason)
    _print(session, revoked)
    for holder in revoked.holders:
        session.out.line(_("still on {node}: {observed}").format(node=holder.node, observed=holder.observed))


@click.command(cls=JsonCommand, help=_("List the nodes that still hold a version."))
@version_argument
@pass_session
def holders(session: Session, ref: VersionRef) -> None:
    """Print one row per node."""
    found = session.client.versions.holders(ref)
    session.out.document({"results": found})
    session.out.table(
        (_("node"), _("observed"), _("desired")), ((each.node, each.observed, each.desired) for each in found)
    )


def _print(session: Session, version: Version) -> None:
    session.out.document(version)
    print_state(session, version)
