"""`tenant-rules show|set`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from client.cli.app import LorekeeperGroup
from client.cli.session import Session, pass_session
from client.i18n import _

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.resources.serving_rules import ServingRules

_tenant = click.argument("tenant")


def _limit(name: str, help_text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(name, type=click.IntRange(0), help=help_text)


@click.group("tenant-rules", cls=LorekeeperGroup, help=_("What a tenant may ask of the gateway."))
def tenant_rules() -> None:
    """Group the tenant-rules commands."""


@tenant_rules.command("show", help=_("Show a tenant's limits."))
@_tenant
@pass_session
def show(session: Session, tenant: str) -> None:
    """Print the rules."""
    _print(session, session.client.serving_rules.get(tenant))


@tenant_rules.command("set", help=_("Change a tenant's limits; what isn't named stays as it is. 0: no limit."))
@_tenant
@_limit("--requests-per-minute", _("Requests per minute."))
@_limit("--tokens-per-minute", _("Tokens of prompts and answers per minute."))
@_limit("--concurrent-requests", _("Requests under way at once."))
@_limit("--gpu-ms-per-minute", _("Milliseconds in engines per minute."))
@click.option("--base-model", "base_models", multiple=True, metavar="NAME", help=_("May be asked for by its name."))
@click.option("--no-base-model", is_flag=True, help=_("No base model may be asked for any more."))
@click.option("--shadow/--no-shadow", "allows_shadow", default=None, help=_("Whether requests may be mirrored."))
@pass_session
def set_rules(
    session: Session,
    /,
    tenant: str,
    *,
    base_models: tuple[str, ...],
    no_base_model: bool,
    allows_shadow: bool | None,
    **limits: int | None,
) -> None:
    """Read the rules, change what was named, and write them back."""
    found = session.client.serving_rules.get(tenant)
    changed = replace(
        found,
        **{name: limit or None for name, limit in limits.items() if limit is not None},
        base_models=() if no_base_model else base_models or found.base_models,
        allows_shadow=found.allows_shadow if allows_shadow is None else allows_shadow,
    )
    _print(session, session.client.serving_rules.set(tenant, changed))


def _print(session: Session, found: ServingRules) -> None:
    session.out.document(found)
    session.out.fields(
        [
            (_("requests per minute"), _shown(found.requests_per_minute)),
            (_("tokens per minute"), _shown(found.tokens_per_minute)),
            (_("requests at once"), _shown(found.concurrent_requests)),
            (_("engine ms per minute"), _shown(found.gpu_ms_per_minute)),
            (_("base models"), found.base_models or "-"),
            (_("may be mirrored"), _("yes") if found.allows_shadow else _("no")),
        ]
    )


def _shown(limit: int | None) -> str:
    return _("no limit") if limit is None else f"{limit:,}"
