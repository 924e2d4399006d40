"""What is compared: engines asked directly, Lorekeeper's gateway, and other routers in front of the same engines."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.gateway.installs import LITELLM, VLLM_ROUTER, environment
from bench.gateway.load import Target
from bench.gateway.processes import GATEWAY_CORE, OTHERS_CORE, Pinned, wait_until_ready
from deploy.compiled import compiled_gateway
from deploy.embedded.ports import LOOPBACK, free_port
from deploy.embedded.postgres import GATEWAY
from deploy.embedded.system.secret_files import random_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from bench.gateway.population import Hosted
    from deploy.embedded.postgres import PostgresServer

_READY_S = 90.0
_LITELLM_MODEL = "bench"


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to the engines: where to ask, for what, and the process that stands between (none: nothing does)."""

    name: str
    port: int
    targets: list[Target]
    between: Pinned | None

    def hold(self) -> None:
        """Stop what stands between where it is."""
        if self.between is not None:
            self.between.hold()

    def go_on(self) -> None:
        """Let it run again."""
        if self.between is not None:
            self.between.go_on()

    def end(self) -> None:
        """End it."""
        if self.between is not None:
            self.between.end()


@dataclass(frozen=True, slots=True)
class Setting:
    """What every arm stands in front of."""

    engines: list[str]
    hosted: list[Hosted]
    postgres: PostgresServer
    folder: Path


@contextmanager
def stub_engines(count: int) -> Iterator[list[str]]:
    """Run so many stub engines in one process; gives their URLs."""
    with stub_process(count) as (_stub, urls):
        yield urls


@contextmanager
def stub_process(count: int) -> Iterator[tuple[Pinned, list[str]]]:
    """The same, with the process."""
    stub = Pinned.start((sys.executable, "-m", "bench.gateway.stub", "--engines", str(count)), core=OTHERS_CORE)
    try:
        ports = json.loads(stub.first_line())
        yield stub, [f"http://{LOOPBACK}:{port}" for port in ports]
    finally:
        stub.end()


def direct(setting: Setting) -> Arm:
    """Without anything between."""
    return Arm("direct", int(setting.engines[0].rpartition(":")[2]), _as_named(setting), None)


def lorekeeper(setting: Setting, **more: str) -> Arm:
    """One gateway process with its defaults, but for the variables in ``more``; compiled, as the image has it."""
    port = free_port()
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(compiled_gateway()),
        "PYTHONSAFEPATH": "1",
        "LOREKEEPER_GATEWAY_DB_URL": setting.postgres.url(GATEWAY),
        "LOREKEEPER_WEB_URL": f"http://{LOOPBACK}:9",
        "LOREKEEPER_GATEWAY_TOKEN": "lk_bench",
        "LOREKEEPER_GATEWAY_STATE_FOLDER": str(setting.folder / "gateway-state"),
        **more,
    }
    command = (sys.executable, "-m", "gateway", "--host", LOOPBACK, "--port", str(port))
    between = Pinned.start(command, core=GATEWAY_CORE, env=env, log=setting.folder / "gateway.log")
    wait_until_ready(f"http://{LOOPBACK}:{port}/readyz", process=between, within_s=_READY_S)
    return Arm("lorekeeper", port, [hosted.target for hosted in setting.hosted], between)


def vllm_router(setting: Setting) -> Arm:
    """vllm-router (Rust) with its default policy where it's fastest: in front of a single engine.

    Its requests a second by the number of engines, on one machine: 7,000 with 1, 4,200 with 4, 360 with 50.
    """
    return _vllm_router(setting, "vllm-router", "cache_aware", setting.engines[:1])


def vllm_router_all(setting: Setting) -> Arm:
    """vllm-router (Rust) with its default policy in front of all engines, as everybody else has them."""
    return _vllm_router(setting, "vllm-router-all", "cache_aware", setting.engines)


def vllm_router_round_robin(setting: Setting) -> Arm:
    """vllm-router (Rust) with the policy that decides nothing."""
    return _vllm_router(setting, "vllm-router-rr", "round_robin", setting.engines)


def _vllm_router(setting: Setting, name: str, policy: str, engines: Sequence[str]) -> Arm:
    port = free_port()
    command = (
        *(str(environment(VLLM_ROUTER) / "vllm-router"), "--host", LOOPBACK, "--port", str(port)),
        *("--policy", policy, "--prometheus-port", str(free_port()), "--log-level", "error"),
        *("--worker-urls", *engines),
    )
    between = Pinned.start(command, core=GATEWAY_CORE, log=setting.folder / f"{name}.log")
    wait_until_ready(f"http://{LOOPBACK}:{port}/health", process=between, within_s=_READY_S)
    return Arm(name, port, _as_named(setting), between)


def litellm(setting: Setting) -> Arm:
    """LiteLLM's proxy, one worker."""
    port = free_port()
    config = setting.folder / "litellm.json"
    deployments = [
        {
            "model_name": _LITELLM_MODEL,
            "litellm_params": {"model": f"openai/{_LITELLM_MODEL}", "api_base": f"{url}/v1", "api_key": "none"},
        }
        for url in setting.engines
    ]
    config.write_text(json.dumps({"model_list": deployments}))
    command = (str(environment(LITELLM) / "litellm"), "--host", LOOPBACK, "--port", str(port), "--config", str(config))
    key = f"sk-{random_text()}"
    env = {
        "PATH": os.environ["PATH"],
        "LITELLM_LOG": "ERROR",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MASTER_KEY": key,
    }
    between = Pinned.start(command, core=GATEWAY_CORE, env=env, log=setting.folder / "litellm.log")
    wait_until_ready(f"http://{LOOPBACK}:{port}/health/liveliness", process=between, within_s=_READY_S)
    return Arm("litellm", port, [Target(_LITELLM_MODEL, key, _LITELLM_MODEL[::-1])], between)


def _as_named(setting: Setting) -> list[Target]:
    """The same requests for those who pass the client's model name on."""
    return [Target(hosted.alias, hosted.key, hosted.alias[::-1]) for hosted in setting.hosted]


ARMS: dict[str, Callable[[Setting], Arm]] = {
    "direct": direct,
    "lorekeeper": lorekeeper,
    "vllm-router": vllm_router,
    "vllm-router-all": vllm_router_all,
    "vllm-router-rr": vllm_router_round_robin,
    "litellm": litellm,
}


@contextmanager
def standing(setting: Setting, names: Sequence[str]) -> Iterator[list[Arm]]:
    """The arms of these names, each held but while ``running``."""
    arms: list[Arm] = []
    try:
        for name in names:
            arm = ARMS[name](setting)
            arms.append(arm)
            arm.hold()
        yield arms
    finally:
        for arm in arms:
            arm.end()


@contextmanager
def running(arm: Arm) -> Iterator[None]:
    """Let the arm's process run meanwhile."""
    arm.go_on()
    try:
        yield
    finally:
        arm.hold()
