"""All that a run needs: the stack with its versions, the relay in front of its engine, and applications that ask."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.cache.base import cut_base
from bench.release.adapters import build_versions
from bench.release.course import Releases
from bench.release.load import Applications
from bench.release.relay import Relay
from bench.release.stage import Stage
from deploy.demo.materials import DEFAULT_CACHE, ensure_base_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.release.plan import Plan


@dataclass(frozen=True, slots=True)
class World:
    """What runs."""

    plan: Plan
    stage: Stage
    relay: Relay
    applications: Applications
    releases: Releases


@contextmanager
def running(plan: Plan, versions: Sequence[str], *, template: str) -> Iterator[World]:
    """Approved versions of these names, the first of them served and asked for while in the block."""
    with tempfile.TemporaryDirectory(prefix="lorekeeper-bench-", ignore_cleanup_errors=True) as scratch:
        work = Path(scratch)
        work.chmod(0o711)  # Postgres runs as another account
        base = cut_base(ensure_base_model(DEFAULT_CACHE)[0], work / "base", layers=plan.layers)
        folders = build_versions(work / "versions", base, versions, seed=plan.seed)
        python = Path(os.environ.get("LOREKEEPER_VLLM_PYTHON", ".venv-vllm/bin/python")).absolute()
        with Relay(plan) as relay, ExitStack() as closing:
            stage = Stage(work / "stack", python=python, base=base, relay=relay)
            closing.callback(stage.stack.stop)
            stage.prepare(folders)
            stage.serve(versions[0])
            releases = Releases(stage)
            closing.callback(releases.close)
            releases.write_template(template)
            applications = Applications(stage.stack.urls["gateway"], stage.callers(), plan)
            with applications:
                yield World(plan, stage, relay, applications, releases)
