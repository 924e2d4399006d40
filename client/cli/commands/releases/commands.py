"""`release make|approve|start|pause|resume|retry|promote|abort|rollback|show|list|watch|rollbacks`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from client.cli.app import EXIT_REFUSED, LorekeeperGroup, UsageRefused
from client.cli.commands.releases.plans import read_plan
from client.cli.commands.releases.printing import print_release, standing, state_of, step_of
from client.cli.params import FILE, alias_argument, version_argument
from client.cli.session import Session, pass_session
from client.i18n import _, ngettext

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from client.refs import PairRef, VersionRef
    from client.resources.releases import Release, Rollback

F = TypeVar("F", bound="Callable[..., object]")
_STATES = ("pending", "prewarming", "shadowing", "progressing", "paused", "promoted", "aborted", "rolled_back")
_reason = click.option("--reason", default="", help=_("Stands in the audit log."))


def _release_argument(command: F) -> F:
    """Add TENANT/ALIAS and the number of one of its releases, as `alias` and `number`; without it the newest."""
    number = click.argument("number", type=click.IntRange(1), required=False)
    return alias_argument(number(command))


def _steering(command: F) -> F:
    """Add what every verb takes."""
    expected = click.option(
        "--expected-revision", type=click.IntRange(1), help=_("Only if the release is at this revision.")
    )
    return _release_argument(_reason(expected(command)))


@click.group(cls=LorekeeperGroup, help=_("Move an alias to another version, step by step, and back."))
def release() -> None:
    """Group the release commands."""


@release.command("make", help=_("Make a release of an alias to an approved version; nothing moves before its start."))
@alias_argument
@version_argument
@click.option("--template", help=_("The release template; default: the one named default."))
@click.option("--plan", "file", type=FILE, help=_("A plan of its own, as YAML, instead of a template."))
@click.option("--reason", default="", help=_("Stands in the release and the audit log."))
@click.option("--expected-revision", type=click.IntRange(1), help=_("Only if the alias is at this revision."))
@pass_session
def make(
    session: Session,
    alias: PairRef,
    ref: VersionRef,
    *,
    template: str | None,
    file: Path | None,
    reason: str,
    expected_revision: int | None,
) -> None:
    """Check the plan, make the release, and say what comes next."""
    if alias.tenant != ref.tenant:
        message = _("Alias and version must be of one tenant, not of {one} and {other}.")
        raise click.UsageError(message.format(one=alias.tenant, other=ref.tenant))
    if template is not None and file is not None:
        raise UsageRefused(_("Name a template or a plan, not both."))
    made = session.client.releases.make(
        alias,
        ref,
        template=template,
        plan_text=None if file is None else read_plan(file),
        reason=reason,
        expected_revision=expected_revision,
    )
    _print(session, made)
    missing = made.approvals_needed - made.approvals_given
    if missing > 0:
        text = ngettext(
            "It takes the approval of {count} other person: lorekeeper release approve {alias} {number}",
            "It takes the approvals of {count} other people: lorekeeper release approve {alias} {number}",
            missing,
        )
        session.out.note(text.format(count=missing, alias=alias, number=made.number))


@release.command("approve", help=_("Consent to the start of a release that somebody else made."))
@_release_argument
@click.option("--digest", help=_("The digest you looked at; refused if the release has another one."))
@click.option("--comment", default="", help=_("Stands with the approval."))
@pass_session
def approve(session: Session, alias: PairRef, number: int | None, *, digest: str | None, comment: str) -> None:
    """Show what it is about, and consent to exactly that."""
    calls = session.client.releases
    found = calls.get(alias, _number(session, alias, number))
    if digest is not None and digest != found.digest:
        message = _("{release} has digest {digest}. Look at it again.")
        raise UsageRefused(message.format(release=found, digest=found.digest))
    print_release(session.out, found, calls.timeline(alias, found.number))
    _print(session, calls.approve(alias, found.number, digest=found.digest, comment=comment))


def _add_verb(name: str, *, told: str) -> None:
    """Let `release NAME` call what the SDK names so."""

    @release.command(name, help=told)
    @_steering
    @pass_session
    def do(session: Session, alias: PairRef, number: int | None, *, reason: str, expected_revision: int | None) -> None:
        verb = getattr(session.client.releases, name)
        _print(
            session, verb(alias, _number(session, alias, number), reason=reason, expected_revision=expected_revision)
        )


_add_verb("start", told=_("Begin the first step of a release."))
_add_verb("pause", told=_("Let no step end; requests go on being split as they are."))
_add_verb("resume", told=_("Go on after a pause or at a gate."))
_add_verb("retry", told=_("Begin the step that is under way anew."))
_add_verb("promote", told=_("Skip what is left of the steps and move the alias."))
_add_verb("abort", told=_("End a release; the alias stays where it is."))


@release.command("rollback", help=_("Take the candidate out of service at once; needs no approval."))
@_release_argument
@_reason
@pass_session
def rollback(session: Session, alias: PairRef, number: int | None, *, reason: str) -> None:
    """Roll back and print how it stands."""
    _print(session, session.client.releases.rollback(alias, _number(session, alias, number), reason=reason))


@release.command("show", help=_("Show a release: what it waits for, its steps and what the judge says of them."))
@_release_argument
@pass_session
def show(session: Session, alias: PairRef, number: int | None) -> None:
    """Print the release and its steps."""
    calls, chosen = session.client.releases, _number(session, alias, number)
    found, steps = calls.get(alias, chosen), calls.timeline(alias, chosen)
    session.out.document({"release": found, "timeline": steps})
    print_release(session.out, found, steps)


@release.command("list", help=_("List the releases of a tenant, newest first."))
@click.argument("tenant")
@click.option("--alias", help=_("Of this alias alone."))
@click.option("--state", type=click.Choice(_STATES), help=_("In this state alone."))
@click.option("--active", is_flag=True, help=_("Those alone that are not over."))
@pass_session
def list_releases(session: Session, tenant: str, *, alias: str | None, state: str | None, active: bool) -> None:
    """Print one row per release."""
    chosen: dict[str, str | int | None] = {"alias": alias, "state": state, "active": "true" if active else None}
    filters = {name: value for name, value in chosen.items() if value is not None}
    found = session.client.releases.all(tenant, filters=filters)
    session.out.document({"results": found})
    columns = (_("alias"), _("number"), _("state"), _("step"), _("stable"), _("candidate"), _("made by"), _("made"))
    rows = (
        (f"{r.tenant}/{r.alias}", r.number, state_of(r), step_of(r), r.stable, r.candidate, r.made_by, r.made_at)
        for r in found
    )
    session.out.table(columns, rows)


@release.command("watch", help=_("Say what a release does until it is over; ends with 1 unless it is promoted."))
@_release_argument
@click.option("--timeout", type=click.FloatRange(min=0), help=_("Seconds to wait; default: for ever."))
@pass_session
def watch(session: Session, alias: PairRef, number: int | None, *, timeout: float | None) -> int:
    """Print a line for each change."""
    found: Release | None = None
    for found in session.client.releases.watch(alias, _number(session, alias, number), timeout_s=timeout):
        session.out.line(standing(found))
    session.out.document(found)
    return 0 if found is not None and found.state == "promoted" else EXIT_REFUSED


@release.command("rollbacks", help=_("Show how long the rollbacks of an alias took, newest first."))
@alias_argument
@pass_session
def rollbacks(session: Session, alias: PairRef) -> None:
    """Print one row per rollback."""
    found = session.client.releases.rollbacks(alias)
    session.out.document({"results": found})
    columns = (_("asked"), _("left"), _("release"), _("done after ms"), _("last answer after ms"), _("strays"))
    session.out.table(columns, map(_rollback_row, found))


def _rollback_row(found: Rollback) -> tuple[object, ...]:
    last = None if found.last_answer_ms is None else f"{found.last_answer_ms:.0f}"
    return found.asked_at, found.left, found.release, f"{found.commit_ms:.0f}", last, found.strays


def _number(session: Session, alias: PairRef, number: int | None) -> int:
    return session.client.releases.newest(alias).number if number is None else number


def _print(session: Session, found: Release) -> None:
    session.out.document(found)
    session.out.line(standing(found))
