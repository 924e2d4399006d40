"""The `lorekeeper` command: all families of commands put together."""

from __future__ import annotations

import click

from client import __version__
from client.cli.app import LorekeeperGroup
from client.cli.commands import (
    adapters,
    aliases,
    audit,
    auth,
    base_models,
    chat,
    nodes,
    pull,
    push,
    reviews,
    tenants,
    versions,
)
from client.cli.session import Session
from client.i18n import _


@click.group(cls=LorekeeperGroup, help=_("Work with a Lorekeeper registry of LoRA adapters."))
@click.version_option(__version__, prog_name="lorekeeper")
@click.pass_context
def cli(context: click.Context) -> None:
    """Begin a run."""
    context.ensure_object(Session)


_COMMANDS: tuple[click.Command, ...] = (
    auth.login,
    auth.whoami,
    push.push,
    pull.pull,
    pull.verify,
    versions.versions,
    versions.show,
    versions.report,
    reviews.approve,
    reviews.decline,
    reviews.yank,
    reviews.revoke,
    aliases.alias,
    aliases.rollback,
    nodes.nodes,
    nodes.node,
    nodes.warm,
    nodes.evict,
    chat.chat,
    audit.audit,
    tenants.tenant,
    tenants.member,
    tenants.token,
    adapters.adapter,
    base_models.base,
)
for _command in _COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """Run the command line; never returns."""
    cli.main(prog_name="lorekeeper")
