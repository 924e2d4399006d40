"""`evaluation sets|set|unset|gates|gate|worst`, `reports` and `revalidate`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from client.cli.app import JsonCommand, LorekeeperGroup
from client.cli.params import FILE, version_argument
from client.cli.session import Session, pass_session
from client.errors import LorekeeperError
from client.i18n import _

if TYPE_CHECKING:
    from pathlib import Path

    from client.models import Check, EvaluationGates, JsonObject
    from client.refs import VersionRef


class BadExamples(LorekeeperError):
    """A line of a file with examples is no JSON object."""

    code = "bad_examples"


@click.group(cls=LorekeeperGroup, help=_("What versions are evaluated on, and the gates they keep to."))
def evaluation() -> None:
    """Group the evaluation commands."""


@evaluation.command("sets", help=_("List a tenant's evaluation sets."))
@click.argument("tenant")
@pass_session
def list_sets(session: Session, tenant: str) -> None:
    """Print one row per set."""
    found = session.client.evaluations.sets(tenant)
    session.out.document({"results": found})
    columns = (_("set"), _("adapter"), _("examples"), _("digest"))
    session.out.table(columns, ((row.name, row.adapter or _("all"), row.count, row.digest[:12]) for row in found))


@evaluation.command("set", help=_("Make or replace a set from a file with one JSON object a line."))
@click.argument("tenant")
@click.argument("name")
@click.argument("file", type=FILE)
@click.option("--adapter", help=_("Only for this adapter; else for all that have no set of their own."))
@pass_session
def keep_set(session: Session, tenant: str, name: str, file: Path, adapter: str | None) -> None:
    """Read the examples, send them, and print what is kept."""
    kept = session.client.evaluations.keep_set(tenant, name, read_examples(file), adapter=adapter)
    session.out.document(kept)
    session.out.line(_("{name} has {count} examples now.").format(name=kept.name, count=kept.count))


@evaluation.command("unset", help=_("Remove a set."))
@click.argument("tenant")
@click.argument("name")
@pass_session
def remove_set(session: Session, tenant: str, name: str) -> None:
    """Remove it."""
    session.client.evaluations.remove_set(tenant, name)
    session.out.document({"removed": name})
    session.out.line(_("{name} is removed.").format(name=name))


@evaluation.command("gates", help=_("Show a tenant's gates."))
@click.argument("tenant")
@pass_session
def show_gates(session: Session, tenant: str) -> None:
    """Print every gate."""
    _print_gates(session, session.client.evaluations.gates(tenant))


@evaluation.command("gate", help=_("Set gates as NAME=NUMBER (NAME= opens one again); the others stay as they are."))
@click.argument("tenant")
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE…")
@pass_session
def set_gates(session: Session, tenant: str, settings: tuple[str, ...]) -> None:
    """Change the named gates and print all."""
    known = session.client.evaluations.gates(tenant)
    wanted = {**known.bounds, "enforcement": known.enforcement, **dict(map(_setting, settings))}
    _print_gates(session, session.client.evaluations.set_gates(tenant, wanted))


@evaluation.command("worst", help=_("Show the examples on which a version did worst, side by side."))
@version_argument
@pass_session
def show_worst(session: Session, ref: VersionRef) -> None:
    """Print one row per example: what was wanted, and what the version, the one served now and the base say."""
    report = session.client.versions.report(ref)
    rows = [row for check in report.checks for row in worst_of(check)]
    session.out.document({"results": rows})
    columns = (_("prompt"), _("wanted"), _("this version"), _("served now"), _("base"))
    session.out.table(
        columns,
        (
            (
                row.get("prompt"),
                row.get("reference"),
                *(_answer(row, voice) for voice in ("candidate", "current", "base")),
            )
            for row in rows
        ),
    )


@click.command(cls=JsonCommand, help=_("List a version's validation reports."))
@version_argument
@pass_session
def reports(session: Session, ref: VersionRef) -> None:
    """Print one row per report."""
    found = session.client.evaluations.reports(ref)
    session.out.document({"results": found})
    columns = (_("at"), _("verdict"), _("rules"), _("digest"), _("stands on it"))
    rows = (
        (row.created_at, row.verdict, row.policy_version, row.digest[:12], _("yes") if row.is_decisive else "")
        for row in found
    )
    session.out.table(columns, rows)


@click.command(cls=JsonCommand, help=_("Have a version checked again, under the rules of today."))
@version_argument
@click.option("--reason", default="", help=_("Why; it stands in the audit log."))
@pass_session
def revalidate(session: Session, ref: VersionRef, reason: str) -> None:
    """Ask for it."""
    session.out.document(session.client.evaluations.revalidate(ref, reason=reason))
    session.out.line(_("{ref} is checked again; see `lorekeeper reports {ref}`.").format(ref=ref))


def read_examples(file: Path) -> list[JsonObject]:
    """Return the examples of a JSONL file; blank lines are passed over.

    Raises:
        BadExamples: names the line that is no JSON object.

    """
    examples: list[JsonObject] = []
    for number, line in enumerate(file.read_text(encoding="utf-8-sig").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise BadExamples(_("{file}: line {number} is no JSON object.").format(file=file, number=number))
        examples.append(row)
    return examples


def worst_of(check: Check) -> list[JsonObject]:
    """Return the worst examples that a check names; most checks name none."""
    rows = check.evidence.get("worst")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _answer(row: JsonObject, voice: str) -> object:
    side = row.get(voice)
    return side.get("answer") if isinstance(side, dict) else None


def _setting(text: str) -> tuple[str, object]:
    name, separator, value = text.partition("=")
    if not separator:
        raise click.UsageError(_("Write {name}=NUMBER.").format(name=text))
    if name == "enforcement" or not value:
        return name, value or None
    try:
        return name, float(value)
    except ValueError:
        raise click.UsageError(_("{value} is no number.").format(value=value)) from None


def _print_gates(session: Session, gates: EvaluationGates) -> None:
    session.out.document(gates)
    session.out.fields([("enforcement", gates.enforcement), *gates.bounds.items()])
