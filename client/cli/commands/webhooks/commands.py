"""`webhook list|show|create|change|remove|rotate-secret|ping|enable|disable|deliveries|delivery|redeliver`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import click

from client.cli.app import LorekeeperGroup
from client.cli.session import Session, pass_session
from client.i18n import _

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.resources.webhooks import Webhook, WebhookDelivery

F = TypeVar("F", bound="Callable[..., object]")
_STATES = ("pending", "delivered", "parked")
_DEFAULT_LIMIT = 50
_kind = click.option(
    "--kind", "kinds", multiple=True, metavar="KIND", help=_("Such as version.revoked, or release.*; several times.")
)


def _webhook_argument(command: F) -> F:
    """Add TENANT and the name of one of its webhooks."""
    return click.argument("tenant")(click.argument("name")(command))


def _delivery_argument(command: F) -> F:
    """Add what names a delivery."""
    return _webhook_argument(click.argument("number", type=click.IntRange(1))(command))


@click.group(cls=LorekeeperGroup, help=_("Tell others of what happens (platform admin). TENANT may be `platform`."))
def webhook() -> None:
    """Group the webhook commands."""


@webhook.command("list", help=_("List the receivers of a tenant's events."))
@click.argument("tenant")
@pass_session
def list_webhooks(session: Session, tenant: str) -> None:
    """Print one row per receiver."""
    found = session.client.webhooks.all(tenant)
    session.out.document({"results": found})
    columns = (_("name"), _("url"), _("kinds"), _("state"))
    session.out.table(columns, ((each.name, each.url, each.kinds, _state_of(each)) for each in found))


@webhook.command("show", help=_("Show one receiver."))
@_webhook_argument
@pass_session
def show_webhook(session: Session, tenant: str, name: str) -> None:
    """Print it."""
    _print(session, session.client.webhooks.get(tenant, name))


@webhook.command("create", help=_("Post what happens from now on to an address; prints the secret this once."))
@_webhook_argument
@click.argument("url")
@_kind
@pass_session
def create_webhook(session: Session, tenant: str, name: str, url: str, kinds: tuple[str, ...]) -> None:
    """Create it and print the secret."""
    if not kinds:
        raise click.UsageError(_("Say of what it is told: --kind, once or more."))
    _print_secret(session, session.client.webhooks.create(tenant, name, url=url, kinds=kinds))


@webhook.command("change", help=_("Send elsewhere, or tell of other things; what isn't named stays as it is."))
@_webhook_argument
@click.option("--url", help=_("Where events are posted to from now on."))
@_kind
@pass_session
def change_webhook(session: Session, tenant: str, name: str, url: str | None, kinds: tuple[str, ...]) -> None:
    """Read it, change what was named, and write it back."""
    found = session.client.webhooks.get(tenant, name)
    changed = session.client.webhooks.change(tenant, name, url=url or found.url, kinds=kinds or found.kinds)
    _print(session, changed)


@webhook.command("remove", help=_("Send nothing more to it, and forget what was sent."))
@_webhook_argument
@pass_session
def remove_webhook(session: Session, tenant: str, name: str) -> None:
    """Remove it."""
    session.client.webhooks.remove(tenant, name)
    session.out.document({"tenant": tenant, "name": name, "removed": True})
    session.out.line(_("{name} is told of nothing any more.").format(name=name))


@webhook.command("rotate-secret", help=_("Sign with a new secret; prints it this once."))
@_webhook_argument
@click.option(
    "--overlap-hours", type=click.IntRange(0), help=_("How long the secret before signs as well; default: a day.")
)
@pass_session
def rotate_secret(session: Session, tenant: str, name: str, overlap_hours: int | None) -> None:
    """Rotate and print the secret."""
    _print_secret(session, session.client.webhooks.rotate_secret(tenant, name, overlap_hours=overlap_hours))


@webhook.command("ping", help=_("Have a test event sent."))
@_webhook_argument
@pass_session
def ping_webhook(session: Session, tenant: str, name: str) -> None:
    """Send it and print the delivery."""
    _print_delivery(session, session.client.webhooks.ping(tenant, name))


@webhook.command("enable", help=_("Send to it again: what it missed first."))
@_webhook_argument
@click.option("--skip-missed", is_flag=True, help=_("Only what happens from now on."))
@pass_session
def enable_webhook(session: Session, tenant: str, name: str, *, skip_missed: bool) -> None:
    """Enable it."""
    _print(session, session.client.webhooks.enable(tenant, name, skip_missed=skip_missed))


@webhook.command("disable", help=_("Send nothing to it until it is enabled."))
@_webhook_argument
@click.option("--reason", required=True, help=_("Goes into the audit log."))
@pass_session
def disable_webhook(session: Session, tenant: str, name: str, reason: str) -> None:
    """Disable it."""
    _print(session, session.client.webhooks.disable(tenant, name, reason=reason))


@webhook.command("deliveries", help=_("Show what was sent, the newest first."))
@_webhook_argument
@click.option("--state", type=click.Choice(_STATES), help=_("Only those."))
@click.option("--kind", help=_("Only events of this kind."))
@click.option("--limit", type=click.IntRange(1), default=_DEFAULT_LIMIT, show_default=True, help=_("At most so many."))
@pass_session
def list_deliveries(
    session: Session, tenant: str, name: str, *, state: str | None, kind: str | None, limit: int
) -> None:
    """Print one row per delivery."""
    found = list(islice(session.client.webhooks.deliveries(tenant, name, state=state, kind=kind), limit))
    session.out.document({"results": found})
    columns = (_("delivery"), _("event"), _("kind"), _("state"), _("attempts"), _("last answer"), _("next attempt"))
    session.out.table(columns, (_row(each) for each in found))


@webhook.command("delivery", help=_("Show one delivery with its attempts and its body."))
@_delivery_argument
@pass_session
def show_delivery(session: Session, tenant: str, name: str, number: int) -> None:
    """Print it."""
    _print_delivery(session, session.client.webhooks.delivery(tenant, name, number))


@webhook.command("redeliver", help=_("Have an event sent again, with its old id."))
@_delivery_argument
@pass_session
def redeliver(session: Session, tenant: str, name: str, number: int) -> None:
    """Send it again and print the new delivery."""
    _print_delivery(session, session.client.webhooks.redeliver(tenant, name, number))


def _state_of(webhook: Webhook) -> str:
    if webhook.disabled_at:
        return _("disabled: {reason}").format(reason=webhook.disabled_reason)
    if webhook.failing_since:
        return _("failing since {at}").format(at=webhook.failing_since)
    return _("enabled")


def _print(session: Session, webhook: Webhook) -> None:
    session.out.document(webhook)
    session.out.fields(
        [
            (_("name"), f"{webhook.tenant or 'platform'}/{webhook.name}"),
            (_("url"), webhook.url),
            (_("kinds"), webhook.kinds),
            (_("state"), _state_of(webhook)),
            (_("old secret until"), webhook.previous_secret_until),
        ]
    )


def _print_secret(session: Session, webhook: Webhook) -> None:
    session.out.document(webhook)
    session.out.line(webhook.secret or "")
    session.out.note(_("This is the secret of {name}; it isn't shown again.").format(name=webhook.name))


def _row(delivery: WebhookDelivery) -> tuple[object, ...]:
    return (
        delivery.id,
        delivery.event,
        delivery.kind,
        delivery.state,
        len(delivery.attempts),
        _last_answer(delivery),
        delivery.next_at,
    )


def _last_answer(delivery: WebhookDelivery) -> str | None:
    if not delivery.attempts:
        return None
    last = delivery.attempts[-1]
    answer = last.error if last.status is None else " ".join(filter(None, (str(last.status), last.error)))
    return _("{answer} ({ms} ms)").format(answer=answer, ms=last.took_ms)


def _print_delivery(session: Session, delivery: WebhookDelivery) -> None:
    session.out.document(delivery)
    session.out.fields(
        [
            (_("delivery"), delivery.id),
            (_("event"), delivery.event),
            (_("kind"), delivery.kind),
            (_("state"), delivery.state),
            (_("next attempt"), delivery.next_at),
        ]
    )
    if delivery.attempts:
        columns = (_("attempt"), _("at"), _("status"), _("ms"), _("error"), _("answer"))
        rows = (
            (each.number, each.at, each.status, each.took_ms, each.error, each.excerpt) for each in delivery.attempts
        )
        session.out.table(columns, rows)
    if delivery.body is not None:
        session.out.line(delivery.body)
