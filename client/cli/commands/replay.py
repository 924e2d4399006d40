"""`replay`: what a cache policy would have done with requests of the past. Offline; needs no server and no token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from client.cli.app import JsonCommand
from client.cli.params import FILE
from client.cli.session import Session, pass_session
from client.errors import FolderRefused
from client.i18n import _

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cachecontrol.policy.effective import PolicyInForce
    from cachecontrol.replay.report import Line
    from cachecontrol.replay.trace import Trace
    from cachecontrol.replay.under_policy import NodeMeans

_GIGABYTE = 10**9
_ENGINES = ("vllm", "tgi", "sglang", "lorax")


@click.command(
    cls=JsonCommand,
    help=_("Replay the requests of a trace on one node under cache policies, side by side, and print what they cost."),
)
@click.option("--policy", "policies", type=FILE, multiple=True, required=True, help=_("A cache policy; repeatable."))
@click.option("--trace", "trace_file", type=FILE, required=True, help=_("The requests: CSV or .npz."))
@click.option("--engine", type=click.Choice(_ENGINES), default="vllm", show_default=True, help=_("Its engine."))
@click.option("--gpu-slots", type=click.IntRange(1), default=16, show_default=True, help=_("The engine's GPU slots."))
@click.option("--cpu-slots", type=click.IntRange(1), default=256, show_default=True, help=_("And its CPU places."))
@click.option("--disk-gb", type=click.FloatRange(0), default=500, show_default=True, help=_("Its disk for versions."))
@click.option("--all-eviction-policies", "every", is_flag=True, help=_("Replay each document with every of them."))
@pass_session
def replay(
    session: Session,
    policies: tuple[Path, ...],
    trace_file: Path,
    *,
    engine: str,
    gpu_slots: int,
    cpu_slots: int,
    disk_gb: float,
    every: bool,
) -> None:
    """Print one line a policy."""
    # Only needed here: they bring numpy and pydantic, which every other command starts faster without.
    from cachecontrol.replay.report import COLUMNS  # noqa: PLC0415
    from cachecontrol.replay.under_policy import NodeMeans  # noqa: PLC0415
    from cachecontrol.states import EngineKind  # noqa: PLC0415

    node = NodeMeans(
        engine=EngineKind(engine), gpu_slots=gpu_slots, cpu_slots=cpu_slots, disk_bytes=int(disk_gb * _GIGABYTE)
    )
    read = [(path, _read_policy(path)) for path in policies]
    trace = _read_trace(trace_file)
    lines = [(path.name, line) for path, policy in read for line in _replayed(policy, trace, node, every=every)]
    session.out.document([{"document": name, "policy": line.policy, **line.figures} for name, line in lines])
    session.out.table((_("document"), *COLUMNS), ((name, *line.cells) for name, line in lines))


def _replayed(policy: PolicyInForce, trace: Trace, node: NodeMeans, *, every: bool) -> Sequence[Line]:
    from cachecontrol.replay.report import compare  # noqa: PLC0415
    from cachecontrol.replay.under_policy import shape_under, weighted_by  # noqa: PLC0415
    from cachecontrol.scoring.make import POLICY_NAMES, make_policy  # noqa: PLC0415

    names = POLICY_NAMES if every else (policy.eviction_policy,)
    scoring = [make_policy(name, policy.scoring) for name in names]
    return compare(weighted_by(policy, trace), scoring, policy.scoring, shape_under(policy, node))


def _read_policy(path: Path) -> PolicyInForce:
    from cachecontrol.policy.effective import PolicyInForce  # noqa: PLC0415
    from cachecontrol.policy.parse import parse_policy  # noqa: PLC0415
    from registry.documents.read import DocumentError  # noqa: PLC0415

    try:
        return PolicyInForce(number=None, document=parse_policy(path.read_text(encoding="utf-8")))
    except (DocumentError, UnicodeDecodeError) as error:
        raise FolderRefused(
            str(path), _("{path} is no cache policy: {reason}.").format(path=path, reason=error)
        ) from error


def _read_trace(path: Path) -> Trace:
    from cachecontrol.replay.formats import TraceUnreadable, read_trace  # noqa: PLC0415

    try:
        with path.open("rb") as source:
            return read_trace(source, name=path.name)
    except TraceUnreadable as error:
        message = _("{path} can't be read as a trace: {reason}.").format(path=path, reason=error)
        raise FolderRefused(str(path), message) from error
