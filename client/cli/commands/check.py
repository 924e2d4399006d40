"""`check`: what a registry would say of an adapter, before it is pushed. Offline; needs no server and no token.

Exit codes are the verdict: 0 accept, 1 warn, 2 reject; 3 when there is no verdict, because the command line is wrong or
a folder can't be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import click

from client.cli.app import JsonCommand, LocalFailure
from client.cli.params import FOLDER
from client.cli.session import Session, pass_session
from client.errors import FolderRefused, LorekeeperError
from client.i18n import _

if TYPE_CHECKING:
    from pathlib import Path

    from workers.validation import Check, Report

DEFAULT_MAX_RANK = 64
EXIT_CODES = {"accept": 0, "warn": 1, "reject": 2}
EXIT_NO_VERDICT = 3


class NoVerdict(click.UsageError):
    """The command line is wrong."""

    exit_code = EXIT_NO_VERDICT


class CheckCommand(JsonCommand):
    """A command whose exit codes 1 and 2 are verdicts, so that whatever else goes wrong ends with 3."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise NoVerdict(error.format_message(), error.ctx) from error

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  # click's own signature
        """Run, and say in a sentence why there is no verdict."""
        try:
            return super().invoke(ctx)
        except LorekeeperError as error:
            _end_without_verdict(ctx, error)
        except OSError as error:
            where = error.filename if error.filename is not None else _("this machine")
            reason = _("{where}: {reason}.").format(where=where, reason=error.strerror or error)
            _end_without_verdict(ctx, LocalFailure(reason))


def _end_without_verdict(context: click.Context, error: LorekeeperError) -> NoReturn:
    context.ensure_object(Session).out.error(error)
    context.exit(EXIT_NO_VERDICT)


@click.command(
    cls=CheckCommand,
    help=_("Check the adapter in FOLDER against a base model, as the registry would. Exit 0 accept, 1 warn, 2 reject."),
)
@click.argument("folder", type=FOLDER)
@click.option("--base", "base_folder", type=FOLDER, required=True, help=_("The base model's folder."))
@click.option("--base-name", "names", multiple=True, metavar="NAME", help=_("A name the base is known by; repeatable."))
@click.option(
    "--max-rank",
    type=click.IntRange(1, 512),
    default=DEFAULT_MAX_RANK,
    show_default=True,
    help=_("The largest rank that engines for this base are started with."),
)
@pass_session
def check(session: Session, folder: Path, base_folder: Path, names: tuple[str, ...], max_rank: int) -> int:
    """Print every finding; the exit code is the verdict."""
    report = _checked(folder, base_folder, names, max_rank)
    session.out.document({"verdict": report.verdict.value, "checks": [_finding(finding) for finding in report.checks]})
    session.out.line(_("validation: {verdict}").format(verdict=report.verdict.value))
    rows = ((finding.verdict.value, finding.name, finding.code, finding.message) for finding in report.checks)
    session.out.table((_("verdict"), _("check"), _("code"), _("reason")), rows)
    return EXIT_CODES[report.verdict.value]


def _checked(folder: Path, base_folder: Path, names: tuple[str, ...], max_rank: int) -> Report:
    # Only needed here: the checks bring numpy, which every other command starts faster without.
    from registry.base_models.description import DescriptionError  # noqa: PLC0415
    from workers.validation import Limits, check_folder  # noqa: PLC0415
    from workers.validation.base_folder import read_base_folder  # noqa: PLC0415

    try:
        description, hints = read_base_folder(base_folder)
    except DescriptionError as error:
        message = _("{folder} can't be read as a base model: {reason}.").format(folder=base_folder, reason=error)
        raise FolderRefused(error.field, message) from error
    limits = Limits(max_rank=max_rank)
    return check_folder(
        folder,
        declared=None,
        base=description,
        limits=limits,
        base_names=names,
        base_hints=hints,
        base_folder=base_folder,
    )


def _finding(check: Check) -> dict[str, object]:
    return {
        "name": check.name,
        "verdict": check.verdict.value,
        "code": check.code,
        "message": check.message,
        "evidence": {**check.evidence, **check.measured},
    }
