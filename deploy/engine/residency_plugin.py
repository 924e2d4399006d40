"""A plugin that makes vLLM tell where its adapters are, and free one's memory: it runs in the engine's environment.

vLLM's own API lists names, whatever became of their weights, and its unload only forgets a name. This adds two routes
to its server (a `vllm.endpoint_plugins` entry), which ask the workers by a method that they get from a
`vllm.general_plugins` entry:

- GET /lorekeeper/adapters answers {"adapters": {name: "gpu" | "cpu" | "disk"}}: in a slot, in memory, or neither;
- POST /lorekeeper/unload {"lora_name": name} forgets the name and removes the adapter from slot and memory. Requests in
  flight still finish: the next step that needs it reads it from disk.

Both want the token of LOREKEEPER_RESIDENCY_TOKEN and a caller on this machine; without a token set they are closed.
Written for vLLM 0.32. Knows nothing of the rest of Lorekeeper, whose packages aren't there.
"""

import hmac
import ipaddress
import os
from argparse import Namespace
from typing import Any

from fastapi import FastAPI, HTTPException, Request

TOKEN_VARIABLE = "LOREKEEPER_RESIDENCY_TOKEN"  # noqa: S105  # a variable's name


def add_worker_method() -> None:
    """Give every worker the method that the route asks for; called in each of vLLM's processes."""
    from vllm.v1.worker.worker_base import WorkerBase  # noqa: PLC0415  # only there when a process of vLLM asks

    WorkerBase.lorekeeper_residency = residency_of


def residency_of(worker: Any) -> tuple[list[int], list[int]]:  # noqa: ANN401  # vLLM's worker
    """The ids of the adapters in this worker's memory, and of those in its slots."""
    manager = worker.model_runner.lora_manager._adapter_manager  # noqa: SLF001  # vLLM has no public way
    return sorted(manager.list_adapters()), sorted(each for each in manager.lora_index_to_id if each is not None)


class ResidencyPlugin:
    """The routes; see vLLM's `EndpointPlugin`."""

    name = "lorekeeper_residency"
    required_tasks = ("generate",)

    def attach_router(self, app: FastAPI) -> None:
        app.add_api_route("/lorekeeper/adapters", show_adapters, methods=["GET"])
        app.add_api_route("/lorekeeper/unload", unload_adapter, methods=["POST"])

    async def init_state(self, engine_client: Any, state: Any, args: Namespace) -> None:  # noqa: ANN401, ARG002
        state.lorekeeper_engine = engine_client


async def show_adapters(request: Request) -> dict[str, dict[str, str]]:
    """Where each adapter is that the server knows by name; over several workers, the lowest place."""
    _admit(request)
    answers = await request.app.state.lorekeeper_engine.collective_rpc("lorekeeper_residency")
    memory = set.intersection(*({*in_memory} for in_memory, _ in answers))
    slots = set.intersection(*({*in_slots} for _, in_slots in answers))
    known = request.app.state.openai_serving_models.lora_requests
    return {"adapters": {name: _tier(each.lora_int_id, memory, slots) for name, each in known.items()}}


async def unload_adapter(request: Request) -> dict[str, bool]:
    """Forget the name, then free its memory; 404 when the name is unknown."""
    _admit(request)
    name = (await request.json()).get("lora_name")
    known = request.app.state.openai_serving_models.lora_requests.pop(name, None)
    if known is None:
        raise HTTPException(404, f"The lora adapter '{name}' cannot be found.")
    return {"freed": bool(await request.app.state.lorekeeper_engine.remove_lora(known.lora_int_id))}


def _tier(adapter: int, memory: set[int], slots: set[int]) -> str:
    if adapter not in memory:
        return "disk"
    return "gpu" if adapter in slots else "cpu"


def _admit(request: Request) -> None:
    token = os.environ.get(TOKEN_VARIABLE, "")
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    host = request.client.host if request.client else ""
    if not (token and _is_loopback(host) and hmac.compare_digest(given.encode(), token.encode())):
        raise HTTPException(403, "not for you")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
