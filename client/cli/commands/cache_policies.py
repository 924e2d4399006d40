"""`cache-policy check|propose|list|show|diff|approve|decline|roll-back|quotas`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from client.cli.app import LorekeeperGroup, UsageRefused
from client.cli.params import FILE
from client.cli.session import Session, pass_session
from client.errors import LorekeeperError
from client.i18n import _

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from client.resources.cache_policies import Amount, CachePolicy, CacheQuota, PolicyDiff, PolicyInForce

_STATES = ("proposed", "active", "superseded", "declined")
_MEGABYTE = 10**6
_base = click.argument("base_model", metavar="BASE_MODEL")
_number = click.argument("number", type=click.IntRange(1))
_file = click.argument("file", type=FILE)


class PolicyRefused(LorekeeperError):
    """A file that is no policy."""

    code = "policy_refused"


@click.group("cache-policy", cls=LorekeeperGroup, help=_("What may stay where on the nodes of a base model."))
def cache_policy() -> None:
    """Group the cache policy commands."""


@cache_policy.command("check", help=_("Check a policy file here, without a server."))
@_file
@pass_session
def check(session: Session, file: Path) -> None:
    """Parse it and say for which base model it is."""
    base_model, document = _parse(file)
    session.out.document({"base_model": base_model, "document": document})
    session.out.line(_("A sound policy for {base}.").format(base=base_model))


@cache_policy.command("propose", help=_("Propose a policy for the base model that the file names."))
@_file
@click.option("--comment", default="", help=_("Stands in the audit log."))
@pass_session
def propose(session: Session, file: Path, comment: str) -> None:
    """Check the file, send it, and show what it would change."""
    base_model, _document = _parse(file)
    made = session.client.cache_policies.propose(base_model, file.read_text(encoding="utf-8"), comment=comment)
    session.out.document(made)
    _print_changes(session, session.client.cache_policies.diff(base_model, made.number))
    session.out.note(
        _("Policy {number} of {base} is {state}. Somebody else approves it: lorekeeper cache-policy approve.").format(
            number=made.number, base=base_model, state=made.state
        )
    )


@cache_policy.command("list", help=_("List every policy that was proposed for a base model."))
@_base
@click.option("--state", type=click.Choice(_STATES))
@pass_session
def list_policies(session: Session, base_model: str, state: str | None) -> None:
    """Print one row per policy."""
    found = session.client.cache_policies.all(base_model, state=state)
    session.out.document({"results": found})
    columns = (_("number"), _("state"), _("proposed by"), _("decided by"), _("in force since"), _("comment"))
    rows = ((p.number, p.state, p.proposed_by, p.decided_by, p.activated_at, p.comment) for p in found)
    session.out.table(columns, rows)


@cache_policy.command("show", help=_("Show one policy, or without a number what is in force."))
@_base
@click.argument("number", type=click.IntRange(1), required=False)
@pass_session
def show(session: Session, base_model: str, number: int | None) -> None:
    """Print the policy's text, or every value of what is in force."""
    if number is None:
        _print_in_force(session, session.client.cache_policies.in_force(base_model))
    else:
        _print_policy(session, session.client.cache_policies.get(base_model, number))


@cache_policy.command("diff", help=_("Show what a policy changes of what is in force, or of another one."))
@_base
@_number
@click.option("--against", type=click.IntRange(0), help=_("Another policy's number; 0: the built-in defaults."))
@pass_session
def diff(session: Session, base_model: str, number: int, against: int | None) -> None:
    """Print one row per change."""
    found = session.client.cache_policies.diff(base_model, number, against=against)
    session.out.document(found)
    _print_changes(session, found)


@cache_policy.command("approve", help=_("Put a proposal of somebody else in force."))
@_base
@_number
@click.option("--digest", help=_("The digest you looked at; refused if the policy has another one."))
@click.option("--reason", default="", help=_("Stands in the audit log."))
@pass_session
def approve(session: Session, base_model: str, number: int, *, digest: str | None, reason: str) -> None:
    """Show what changes, and send exactly that."""
    calls = session.client.cache_policies
    policy = calls.get(base_model, number)
    if digest is not None and digest != policy.digest:
        message = _("Policy {number} has digest {digest}. Look at it again.")
        raise UsageRefused(message.format(number=number, digest=policy.digest))
    _print_changes(session, calls.diff(base_model, number))
    _print_policy(
        session, calls.approve(base_model, number, digest=policy.digest, against=policy.in_force, reason=reason)
    )


@cache_policy.command("decline", help=_("Refuse a proposal for good, or take your own back."))
@_base
@_number
@click.option("--reason", required=True, help=_("Stands in the audit log."))
@pass_session
def decline(session: Session, base_model: str, number: int, reason: str) -> None:
    """Decline and print it."""
    _print_policy(session, session.client.cache_policies.decline(base_model, number, reason=reason))


@cache_policy.command("roll-back", help=_("Put in force again what was approved before; takes nobody else."))
@_base
@click.option("--to", type=click.IntRange(0), help=_("Its number; 0: the built-in defaults. Else the one before."))
@click.option("--reason", default="", help=_("Stands in the audit log."))
@pass_session
def roll_back(session: Session, base_model: str, *, to: int | None, reason: str) -> None:
    """Roll back and print what is in force."""
    calls = session.client.cache_policies
    number = _one_before(session, base_model) if to is None else to
    found = calls.roll_back(base_model, to=number, reason=reason)
    session.out.document(found)
    session.out.line(_("{what} is in force for {base}.").format(what=_called(found.number), base=base_model))


@cache_policy.command("quotas", help=_("Show who may hold how much of a base model's nodes, and does."))
@click.argument("base_model", metavar="BASE_MODEL", required=False)
@click.option("--tenant", help=_("A tenant's own quotas, of every base model."))
@pass_session
def quotas(session: Session, base_model: str | None, tenant: str | None) -> None:
    """Print one row per tenant and base model."""
    if (base_model is None) == (tenant is None):
        raise UsageRefused(_("Name a base model, or a tenant with --tenant."))
    calls = session.client.cache_policies
    found = calls.quotas_of(tenant) if tenant is not None else calls.quotas(base_model or "")
    session.out.document({"results": found})
    columns = (_("base model"), _("tenant"), _("class"), _("GPU slots"), _("CPU MB"), _("disk MB"), _("loads/min"))
    session.out.table((*columns, _("queued")), map(_quota_row, found))


def _parse(file: Path) -> tuple[str, dict[str, object]]:
    from cachecontrol.policy.parse import parse_policy  # noqa: PLC0415  only needed here
    from registry.documents.read import DocumentError  # noqa: PLC0415  as above

    try:
        document = parse_policy(file.read_text(encoding="utf-8"))
    except (DocumentError, UnicodeDecodeError) as error:
        raise PolicyRefused(_("{file} is no policy: {reason}.").format(file=file, reason=error)) from error
    return document.base_model, document.model_dump(mode="json")


def _one_before(session: Session, base_model: str) -> int:
    """The newest policy that was in force and is older than what is now; 0 if there is none."""
    current = session.client.cache_policies.in_force(base_model).number
    if current == 0:
        raise UsageRefused(_("The built-in defaults are in force: there is nothing before them."))
    found = session.client.cache_policies.all(base_model, state="superseded")
    return max((policy.number for policy in found if policy.number < current), default=0)


def _print_policy(session: Session, policy: CachePolicy) -> None:
    session.out.document(policy)
    session.out.fields(
        [
            (_("base model"), policy.base_model),
            (_("number"), policy.number),
            (_("state"), policy.state),
            (_("digest"), policy.digest),
            (_("proposed"), f"{policy.proposed_by} {policy.proposed_at}"),
            (_("decided"), f"{policy.decided_by} {policy.decided_at}" if policy.decided_by else None),
            (_("reason"), policy.reason or None),
        ]
    )
    session.out.line(policy.text)


def _print_in_force(session: Session, policy: PolicyInForce) -> None:
    session.out.document(policy)
    session.out.line(_("{what}:").format(what=_called(policy.number)))
    session.out.line(json.dumps(policy.document, indent=2))


def _print_changes(session: Session, found: PolicyDiff) -> None:
    rows = ((change.path, _value(change.before), _value(change.after)) for change in found.changes)
    session.out.table((_("what"), _called(found.before), _called(found.after)), rows)


def _called(number: int) -> str:
    return _("Policy {number}").format(number=number) if number else _("The built-in default")


def _value(value: object) -> str:
    return "-" if value is None else json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else str(value)


def _quota_row(quota: CacheQuota) -> Sequence[object]:
    loads = quota.loads_per_minute
    return (
        quota.base_model,
        quota.tenant,
        quota.sla,
        _amount(quota.gpu_slots, unit=1),
        _amount(quota.cpu_bytes, unit=_MEGABYTE),
        _amount(quota.disk_bytes, unit=_MEGABYTE),
        f"{loads.used}/{_limit(loads.limit)}",
        f"{quota.queue_places.used}/{_limit(quota.queue_places.limit)}",
    )


def _amount(amount: Amount, *, unit: int) -> str:
    """``used/ceiling (floor)``."""
    most = None if amount.ceiling is None else amount.ceiling / unit
    floor = f" ({amount.floor / unit:g}+)" if amount.floor else ""
    return f"{amount.used / unit:g}/{_limit(most)}{floor}"


def _limit(limit: float | None) -> str:
    return "∞" if limit is None else f"{limit:g}"
