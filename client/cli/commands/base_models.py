"""`base register|list|show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from client.cli.app import LorekeeperGroup
from client.cli.params import FOLDER
from client.cli.progress import transfer_progress
from client.cli.session import Session, pass_session
from client.errors import FolderRefused
from client.i18n import _

if TYPE_CHECKING:
    from pathlib import Path

    from client.models import BaseModelRevision
    from client.progress import Progress

DEFAULT_MAX_RANK = 64


@click.group(cls=LorekeeperGroup, help=_("Pinned base models."))
def base() -> None:
    """Group the base model commands."""


@base.command("register", help=_("Describe a model folder here and register that; weights never leave this machine."))
@click.argument("name")
@click.option("--revision", required=True, metavar="LABEL", help=_("The revision's label, such as a commit."))
@click.option("--folder", required=True, type=FOLDER, help=_("The folder with config.json and the weights."))
@click.option("--max-rank", type=click.IntRange(1, 512), default=DEFAULT_MAX_RANK, show_default=True)
@pass_session
def register_base(session: Session, name: str, revision: str, folder: Path, max_rank: int) -> None:
    """Describe, send, print the digest."""
    with transfer_progress(quiet=session.json_mode) as progress:
        description = _describe(folder, progress)
    created = session.client.base_models.register(name, revision=revision, description=description, max_rank=max_rank)
    _print(session, created)


@base.command("list", help=_("List the registered revisions."))
@pass_session
def list_bases(session: Session) -> None:
    """Print one row per revision."""
    found = session.client.base_models.all()
    session.out.document({"results": found})
    rows = ((row.name, row.revision, row.max_rank, row.digest) for model in found for row in model.revisions)
    columns = (_("base model"), _("revision"), _("max rank"), _("digest"))
    session.out.table(columns, rows)


@base.command("show", help=_("Show a registered revision."))
@click.argument("name")
@click.argument("revision")
@pass_session
def show_base(session: Session, name: str, revision: str) -> None:
    """Print it."""
    _print(session, session.client.base_models.get(name, revision))


def _describe(folder: Path, progress: Progress) -> dict[str, object]:
    from registry.base_models.description import DescriptionError, describe_folder  # noqa: PLC0415  # only needed here

    path, done = folder.name or str(folder), 0

    def report(hashed: int, total: int) -> None:
        nonlocal done
        if done == 0:
            progress.started("hash", path, total)
        progress.moved("hash", path, hashed - done)
        done = hashed

    try:
        return describe_folder(folder, progress=report).to_json()
    except DescriptionError as error:
        message = _("{folder} can't be described: {reason}.").format(folder=folder, reason=error)
        raise FolderRefused(error.field, message) from error


def _print(session: Session, revision: BaseModelRevision) -> None:
    session.out.document(revision)
    text = _("{name} {revision} is registered with digest {digest}.")
    session.out.line(text.format(name=revision.name, revision=revision.revision, digest=revision.digest))
