"""`adapter create|list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from client.cli.app import LorekeeperGroup
from client.cli.params import adapter_argument
from client.cli.session import Session, pass_session
from client.i18n import _

if TYPE_CHECKING:
    from client.refs import PairRef


@click.group(cls=LorekeeperGroup, help=_("Named lines of weights."))
def adapter() -> None:
    """Group the adapter commands."""


@adapter.command("create", help=_("Create an adapter for a base model."))
@adapter_argument
@click.option("--base-model", required=True, help=_("The registered base model it belongs to."))
@click.option("--description", default="")
@pass_session
def create_adapter(session: Session, adapter: PairRef, base_model: str, description: str) -> None:
    """Create and print it."""
    created = session.client.adapters.create(
        adapter.tenant, adapter.name, base_model=base_model, description=description
    )
    session.out.document(created)
    session.out.line(_("Adapter {adapter} exists now.").format(adapter=adapter))


@adapter.command("list", help=_("List a tenant's adapters."))
@click.argument("tenant")
@pass_session
def list_adapters(session: Session, tenant: str) -> None:
    """Print one row per adapter."""
    found = session.client.adapters.all(tenant)
    session.out.document({"results": found})
    columns = (_("adapter"), _("base model"), _("description"))
    session.out.table(columns, ((row.name, row.base_model, row.description) for row in found))
