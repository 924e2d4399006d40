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
    check,
    evaluations,
    keys,
    nodes,
    policies,
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
    check.check,
    push.push,
    pull.pull,
    pull.verify,
    versions.versions,
    versions.show,
    versions.report,
    evaluations.reports,
    evaluations.revalidate,
    evaluations.evaluation,
    versions.search,
    reviews.inbox,
    reviews.review,
    reviews.comment,
    reviews.approve,
    reviews.decline,
    reviews.yank,
    reviews.revoke,
    reviews.holders,
    reviews.break_glass,
    policies.policy,
    policies.retention,
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
    keys.key,
    keys.pipeline,
    adapters.adapter,
    base_models.base,
)
for _command in _COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """Run the command line; never returns."""
    cli.main(prog_name="lorekeeper")
