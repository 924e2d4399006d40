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
    cache_policies,
    chat,
    check,
    evaluations,
    evictions,
    keys,
    nodes,
    policies,
    pull,
    push,
    replay,
    reviews,
    tenant_rules,
    tenants,
    versions,
)
from client.cli.commands.releases import commands as releases
from client.cli.commands.releases import templates as release_templates
from client.cli.commands.serving import usage
from client.cli.commands.webhooks import commands as webhooks
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
    cache_policies.cache_policy,
    replay.replay,
    aliases.alias,
    aliases.rollback,
    releases.release,
    release_templates.release_template,
    nodes.nodes,
    nodes.node,
    nodes.warm,
    nodes.evict,
    evictions.evictions,
    evictions.why,
    usage.usage,
    usage.trace,
    chat.chat,
    chat.feedback,
    audit.audit,
    webhooks.webhook,
    tenants.tenant,
    tenants.member,
    tenants.token,
    tenant_rules.tenant_rules,
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
