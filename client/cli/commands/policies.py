"""`policy show|set` and `retention show|set|plan|apply`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from client.cli.app import LorekeeperGroup
from client.cli.params import adapter_argument
from client.cli.session import Session, pass_session
from client.i18n import _

if TYPE_CHECKING:
    from client.models import ApprovalPolicy, RetentionPlan
    from client.refs import PairRef

_ROLES = ("operator", "release_manager", "reviewer")
_tenant = click.argument("tenant")


@click.group(cls=LorekeeperGroup, help=_("Whose approvals, and how many, the versions of a tenant need."))
def policy() -> None:
    """Group the policy commands."""


@policy.command("show", help=_("Show a tenant's approval policy."))
@_tenant
@pass_session
def show_policy(session: Session, tenant: str) -> None:
    """Print the policy."""
    _print_policy(session, session.client.policies.approval(tenant))


@policy.command("set", help=_("Change a tenant's approval policy; what isn't named stays as it is."))
@_tenant
@click.option("--required", type=click.IntRange(1), help=_("How many different people have to approve."))
@click.option("--role", "roles", type=click.Choice(_ROLES), multiple=True, help=_("Whoever has one of these may."))
@click.option("--only", "only_people", multiple=True, metavar="EMAIL", help=_("Only these of them may."))
@click.option("--everybody", is_flag=True, help=_("Everybody who has a role may again."))
@click.option("--must", "required_people", multiple=True, metavar="EMAIL", help=_("Has to be among them."))
@click.option("--nobody-must", is_flag=True, help=_("Nobody has to be among them by name any more."))
@click.option("--valid-days", "validity_days", type=click.IntRange(0), help=_("How long an approval counts; 0: ever."))
@pass_session
def set_policy(
    session: Session,
    tenant: str,
    *,
    required: int | None,
    roles: tuple[str, ...],
    only_people: tuple[str, ...],
    everybody: bool,
    required_people: tuple[str, ...],
    nobody_must: bool,
    validity_days: int | None,
) -> None:
    """Read the policy, change what was named, and write it back."""
    found = session.client.policies.approval(tenant)
    changed = replace(
        found,
        required=required or found.required,
        roles=roles or found.roles,
        only_people=() if everybody else only_people or found.only_people,
        required_people=() if nobody_must else required_people or found.required_people,
        validity_days=found.validity_days if validity_days is None else validity_days or None,
    )
    _print_policy(session, session.client.policies.set_approval(tenant, changed))


@click.group(cls=LorekeeperGroup, help=_("How long an adapter keeps the files of versions that nothing uses."))
def retention() -> None:
    """Group the retention commands."""


@retention.command("show", help=_("Show an adapter's retention policy."))
@adapter_argument
@pass_session
def show_retention(session: Session, adapter: PairRef) -> None:
    """Print the policy."""
    found = session.client.policies.retention(adapter)
    session.out.document(found)
    session.out.fields(_retention_fields(found.keep_days, automatic=found.automatic, applied_at=found.applied_at))


@retention.command("set", help=_("Say how many days files are kept; removes nothing yet."))
@adapter_argument
@click.option("--days", type=click.IntRange(1), required=True, help=_("Days since a version was last of use."))
@click.option("--automatic", is_flag=True, help=_("Apply it daily; only after it was applied once by hand."))
@pass_session
def set_retention(session: Session, adapter: PairRef, *, days: int, automatic: bool) -> None:
    """Set and print the policy."""
    made = session.client.policies.set_retention(adapter, keep_days=days, automatic=automatic)
    session.out.document(made)
    session.out.fields(_retention_fields(made.keep_days, automatic=made.automatic, applied_at=made.applied_at))


@retention.command("plan", help=_("Show what would be removed now, and why the rest is kept."))
@adapter_argument
@pass_session
def plan(session: Session, adapter: PairRef) -> None:
    """Print the plan."""
    _print_plan(session, session.client.policies.plan_retention(adapter))


@retention.command("apply", help=_("Remove exactly what a plan showed."))
@adapter_argument
@click.option("--plan", "digest", required=True, metavar="DIGEST", help=_("The digest of the plan you looked at."))
@pass_session
def apply(session: Session, adapter: PairRef, digest: str) -> None:
    """Apply and print the plan."""
    _print_plan(session, session.client.policies.apply_retention(adapter, digest=digest))


def _print_policy(session: Session, found: ApprovalPolicy) -> None:
    session.out.document(found)
    session.out.fields(
        [
            (_("required"), found.required),
            (_("roles"), found.roles),
            (_("only"), found.only_people or _("everybody with a role")),
            (_("must be among them"), found.required_people or "-"),
            (_("an approval counts"), _days(found.validity_days)),
        ]
    )


def _print_plan(session: Session, found: RetentionPlan) -> None:
    session.out.document(found)
    columns = (_("version"), _("state"), _("kept because"))
    session.out.table(columns, ((v.version, v.state, v.keep or _("removed")) for v in found.versions))
    session.out.fields(
        [(_("removed"), found.removed), (_("bytes freed"), f"{found.bytes:,}"), (_("plan"), found.digest)]
    )


def _retention_fields(days: int, *, automatic: bool, applied_at: str | None) -> list[tuple[str, object]]:
    return [
        (_("kept"), _days(days)),
        (_("automatic"), _("yes") if automatic else _("no")),
        (_("applied by hand"), applied_at),
    ]


def _days(days: int | None) -> str:
    return _("for ever") if days is None else _("{days} days").format(days=days)
