"""`release-template list|show|write|check`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from client.cli.app import LorekeeperGroup
from client.cli.commands.releases.plans import read_plan
from client.cli.params import FILE
from client.cli.session import Session, pass_session
from client.i18n import _

if TYPE_CHECKING:
    from pathlib import Path

    from client.resources.release_templates import ReleaseTemplate


@click.group("release-template", cls=LorekeeperGroup, help=_("The plans that a tenant's releases are made by."))
def release_template() -> None:
    """Group the template commands."""


@release_template.command("list", help=_("List a tenant's release templates."))
@click.argument("tenant")
@pass_session
def list_templates(session: Session, tenant: str) -> None:
    """Print one row per template."""
    found = session.client.release_templates.all(tenant)
    session.out.document({"results": found})
    columns = (_("name"), _("edition"), _("written by"), _("written"), _("digest"))
    rows = ((t.name, t.number or _("built in"), t.written_by, t.written_at, t.digest) for t in found)
    session.out.table(columns, rows)


@release_template.command("show", help=_("Show a release template with every value."))
@click.argument("tenant")
@click.argument("name", default="default")
@click.option("--number", type=click.IntRange(0), help=_("An edition; default: the one in use."))
@pass_session
def show(session: Session, tenant: str, name: str, number: int | None) -> None:
    """Print its text, or every value of the one that is built in."""
    _print(session, session.client.release_templates.get(tenant, name, number=number))


@release_template.command("check", help=_("Check a plan file here, without a server."))
@click.argument("file", type=FILE)
@pass_session
def check(session: Session, file: Path) -> None:
    """Parse it."""
    text = read_plan(file)
    session.out.document({"text": text})
    session.out.line(_("A sound release plan."))


@release_template.command("write", help=_("Write a template's next edition; releases that are made keep theirs."))
@click.argument("tenant")
@click.argument("name")
@click.argument("file", type=FILE)
@pass_session
def write(session: Session, tenant: str, name: str, file: Path) -> None:
    """Check the file and send it."""
    _print(session, session.client.release_templates.write(tenant, name, read_plan(file)))


def _print(session: Session, template: ReleaseTemplate) -> None:
    session.out.document(template)
    edition = _("edition {number}").format(number=template.number) if template.number else _("built in")
    session.out.line(f"{template.tenant}/{template.name}, {edition}:")
    session.out.line(template.text or json.dumps(template.document, indent=2))
