"""`nodes`, `node register|rotate-token|cordon|uncordon|drain|resume|recycle`, `warm` and `evict`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from client.cli.app import EXIT_REFUSED, JsonCommand, LorekeeperGroup
from client.cli.params import version_argument
from client.cli.session import Session, pass_session
from client.i18n import _
from client.resources.nodes import DEMOTE_ENDS, EVICT_ENDS, WARM_ENDS

if TYPE_CHECKING:
    from client.refs import VersionRef
    from client.resources.nodes import Node, Residency

DEFAULT_WAIT_S = 120.0
_wait = click.option("--wait", is_flag=True, help=_("Wait until the node has done it."))
_timeout = click.option(
    "--timeout", type=click.FloatRange(min=0), default=DEFAULT_WAIT_S, show_default=True, help=_("Seconds to wait.")
)

_reason = click.option("--reason", default="", help=_("For the audit log."))


@click.command(cls=JsonCommand, help=_("List the nodes, or show one with what sits on it."))
@click.argument("name", required=False)
@pass_session
def nodes(session: Session, name: str | None) -> None:
    """Print one row per node, or one per residency of the node."""
    if name is None:
        found = session.client.nodes.all()
        session.out.document({"results": found})
        columns = (_("node"), _("status"), _("condition"), _("engine"), _("base model"), _("GPU slots"), _("last seen"))
        session.out.table(columns, (_node_row(node) for node in found))
        return
    node = session.client.nodes.get(name)
    session.out.document(node)
    session.out.fields(_node_fields(node))
    shown = (
        _("version"),
        _("planned"),
        _("tier"),
        _("observed"),
        _("fetch ms"),
        _("load ms"),
        _("last used"),
        _("message"),
    )
    session.out.table(shown, (_residency_row(residency) for residency in node.residencies))


@click.group(cls=LorekeeperGroup, help=_("Register serving nodes, set them aside, restart their engines."))
def node() -> None:
    """Group the node commands."""


@node.command("register", help=_("Register a serving node; prints its token this once."))
@click.argument("name")
@click.option("--engine-url", required=True, help=_("Where agent and gateways reach the engine."))
@click.option("--engine-kind", default="vllm", show_default=True)
@click.option("--base-model", required=True, help=_("The base model the engine serves."))
@click.option("--base-revision", required=True, metavar="LABEL")
@click.option(
    "--gpu-slots", required=True, type=click.IntRange(1), help=_("Adapters on the GPU at a time (max_loras).")
)
@click.option("--cpu-slots", required=True, type=click.IntRange(0), help=_("Adapters in CPU memory (max_cpu_loras)."))
@click.option("--max-rank", required=True, type=click.IntRange(1), help=_("The engine's max_lora_rank."))
@click.option("--disk-bytes", required=True, type=click.IntRange(1), help=_("Size of the disk cache in bytes."))
@click.option("--memory-bytes", type=click.IntRange(1), help=_("What adapters may take of its CPU memory."))
@pass_session
def register_node(session: Session, /, name: str, **facts: str | int | None) -> None:
    """Register and print the token."""
    _print_issued(session, session.client.nodes.register(name, **facts))  # type: ignore[arg-type]  # click typed each


@node.command("rotate-token", help=_("Give a node a new token; the old one stops working."))
@click.argument("name")
@pass_session
def rotate_token(session: Session, name: str) -> None:
    """Rotate and print the token."""
    _print_issued(session, session.client.nodes.rotate_token(name))


@node.command("cordon", help=_("Place nothing new on a node; what it has stays."))
@click.argument("name")
@_reason
@pass_session
def cordon(session: Session, name: str, reason: str) -> None:
    """Cordon and print the node."""
    _print_node(session, session.client.nodes.cordon(name, reason=reason))


@node.command("uncordon", help=_("Take the cordon off a node."))
@click.argument("name")
@_reason
@pass_session
def uncordon(session: Session, name: str, reason: str) -> None:
    """Uncordon and print the node."""
    _print_node(session, session.client.nodes.uncordon(name, reason=reason))


@node.command("drain", help=_("Empty a node: no more requests, and what it holds goes elsewhere."))
@click.argument("name")
@_reason
@pass_session
def drain(session: Session, name: str, reason: str) -> None:
    """Drain and print the node."""
    _print_node(session, session.client.nodes.drain(name, reason=reason))


@node.command("resume", help=_("End a drain."))
@click.argument("name")
@_reason
@pass_session
def resume(session: Session, name: str, reason: str) -> None:
    """Resume and print the node."""
    _print_node(session, session.client.nodes.resume(name, reason=reason))


@node.command("recycle", help=_("Have a node's engine restarted by its agent, after its requests had time to end."))
@click.argument("name")
@_reason
@pass_session
def recycle(session: Session, name: str, reason: str) -> None:
    """Recycle and print the node."""
    _print_node(session, session.client.nodes.recycle(name, reason=reason))


@click.command(cls=JsonCommand, help=_("Load a version on a node's GPU."))
@click.argument("node")
@version_argument
@_wait
@_timeout
@pass_session
def warm(session: Session, node: str, ref: VersionRef, *, wait: bool, timeout: float) -> int:
    """Ask, and with --wait end with 1 if the load failed."""
    residency = session.client.nodes.warm(node, ref)
    if not wait:
        return _print_residency(session, residency)
    ended = session.client.nodes.wait(node, ref, ends=WARM_ENDS, generation=residency.generation, timeout_s=timeout)
    return _print_residency(session, ended or residency)


@click.command(cls=JsonCommand, help=_("Take a version off a node, or out of its engine alone."))
@click.argument("node")
@version_argument
@click.option(
    "--to",
    type=click.Choice(["absent", "disk"]),
    default="absent",
    show_default=True,
    help=_("`disk` keeps its files on the node."),
)
@_wait
@_timeout
@pass_session
def evict(session: Session, node: str, ref: VersionRef, *, to: str, wait: bool, timeout: float) -> int:
    """Ask, and with --wait end when the version is where it was to go."""
    residency = session.client.nodes.evict(node, ref, to=to)
    if not wait:
        return _print_residency(session, residency)
    ends = DEMOTE_ENDS if to == "disk" else EVICT_ENDS
    ended = session.client.nodes.wait(node, ref, ends=ends, generation=residency.generation, timeout_s=timeout)
    return _print_residency(session, ended or residency)


def _node_row(node: Node) -> tuple[object, ...]:
    base = f"{node.base_model} {node.base_revision}"
    condition = ", ".join(node.condition)
    return (node.name, node.status, condition, node.engine_kind, base, node.gpu_slots, node.last_seen_at)


def _residency_row(residency: Residency) -> tuple[object, ...]:
    estimate = _("{tier}?").format(tier=residency.tier) if residency.tier_is_estimate else residency.tier
    return (
        residency.ref,
        residency.planned_tier,
        estimate,
        residency.observed,
        residency.fetch_ms,
        residency.load_ms,
        residency.last_used_at,
        residency.message,
    )


def _print_node(session: Session, node: Node) -> None:
    session.out.document(node)
    session.out.fields(_node_fields(node))


def _node_fields(node: Node) -> list[tuple[str, object]]:
    return [
        (_("node"), node.name),
        (_("status"), node.status),
        (_("condition"), ", ".join(node.condition)),
        (_("engine"), f"{node.engine_kind} {node.engine_url}"),
        (_("base model"), f"{node.base_model} {node.base_revision}"),
        (_("slots"), f"GPU {node.gpu_slots}, CPU {node.cpu_slots}"),
        (_("max rank"), node.max_rank),
        (_("disk cache"), _disk_of(node)),
        (_("wrong paths seen"), node.mismatches),
        (_("last seen"), node.last_seen_at),
    ]


def _disk_of(node: Node) -> str:
    if node.disk_used_bytes is None:
        return f"{node.disk_bytes:,}"
    return _("{used:,} of {size:,} bytes").format(used=node.disk_used_bytes, size=node.disk_bytes)


def _print_issued(session: Session, node: Node) -> None:
    session.out.document(node)
    session.out.line(node.token or "")
    session.out.note(_("This is the token of {name}; it isn't shown again.").format(name=node.name))


def _print_residency(session: Session, residency: Residency) -> int:
    session.out.document(residency)
    load = "" if residency.load_ms is None else _(", loaded in {ms} ms").format(ms=residency.load_ms)
    message = f" ({residency.message})" if residency.message else ""
    text = _("{ref} on {node}: wanted {desired}, is {observed}{load}{message}")
    session.out.line(
        text.format(
            ref=residency.ref,
            node=residency.node,
            desired=residency.desired,
            observed=residency.observed,
            load=load,
            message=message,
        )
    )
    return EXIT_REFUSED if residency.observed == "failed" else 0
