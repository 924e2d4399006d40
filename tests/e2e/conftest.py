"""The whole stack of processes: with the contract server as its engine, or with a real vLLM."""

import dataclasses
import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.embedded.facts import EngineOptions, StackFacts
from deploy.embedded.plan import build_plan
from deploy.embedded.specs import ProcessSpec, Spec
from deploy.embedded.stack import Stack
from tests.e2e.journey import Journey
from tests.factories.adapters import BASE_NAME
from tests.factories.base_folders import write_base_folder

logging.getLogger("httpx").setLevel(logging.WARNING)
FAST = {
    "LOREKEEPER_VALIDATE_DEADLINE": "3",
    "LOREKEEPER_COMMAND_DEADLINE": "3",
    "LOREKEEPER_NODE_TIMEOUT": "4",
    "LOREKEEPER_DRAIN_SECONDS": "0.5",
    "LOREKEEPER_EVICT_GRACE": "2",
    "LOREKEEPER_SWEEP_SECONDS": "1",
    "LOREKEEPER_NODE_HEARTBEAT": "0.5",
}


def plan_with_fake_engine(facts: StackFacts) -> tuple[Spec, ...]:
    """The real plan, with the contract server in the engine's place."""

    def replaced(spec: Spec) -> Spec:
        if spec.name != "engine" or not isinstance(spec, ProcessSpec):
            return spec
        argv = (sys.executable, "-m", "tests.fakes.engine_vllm", "--port", str(facts.ports["engine"]))
        slots = ("--base", BASE_NAME, "--cpu-slots", "64", "--gpu-slots", "4", "--max-rank", "16")
        root = Path(__file__).resolve().parents[2]
        return dataclasses.replace(spec, argv=argv + slots, environment=facts.inherited, folder=root)

    return tuple(replaced(spec) for spec in build_plan(facts))


@pytest.fixture(scope="module")
def stack_folder() -> Iterator[Path]:
    """A folder that other accounts may pass through, as Postgres has to: pytest's own folders are closed to them."""
    with tempfile.TemporaryDirectory(prefix="lorekeeper-e2e-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture(scope="module")
def fake_stack(stack_folder: Path) -> Iterator[Stack]:
    folder = stack_folder
    engine = EngineOptions(
        python=Path(sys.executable),
        model=write_base_folder(folder / "base"),
        base_model=BASE_NAME,
        base_revision="r1",
        gpu_slots=4,
        cpu_slots=64,
        max_rank=16,
        evaluates=False,
    )
    stack = Stack(folder / "data", engine=engine, settings=FAST, plan=plan_with_fake_engine, calm_seconds=0)
    stack.start()
    try:
        stack.wait_ready(seconds=120)
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="module")
def journey(fake_stack: Stack) -> Iterator[Journey]:
    made = Journey(fake_stack, base_model=BASE_NAME, base_revision="r1").set_up()
    yield made
    made.close()
