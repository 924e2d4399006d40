"""What is known before the first process starts: folders, ports, secrets, and the choices of whoever starts it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deploy.embedded.ports import LOOPBACK, settle_ports
from deploy.embedded.postgres import PostgresPasswords
from deploy.embedded.seaweed import PORT_NAMES, S3Credentials
from deploy.embedded.system.secret_files import SecretFolder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Where the processes that serve nothing else answer /metrics.
METRICS_PORTS = ("validate.metrics", "control.metrics", "agent.metrics")
_SERVED_PORTS = ("postgres", "valkey", *PORT_NAMES, "web", "gateway", "engine", *METRICS_PORTS)
# What a process gets of the environment in which the stack was started, besides the timings below.
_INHERITED = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "USER",
    "SSL_CERT_FILE",
    "OMP_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
)
_TIMINGS = (
    "LOREKEEPER_VALIDATE_DEADLINE",
    "LOREKEEPER_COMMAND_DEADLINE",
    "LOREKEEPER_NODE_TIMEOUT",
    "LOREKEEPER_DRAIN_SECONDS",
    "LOREKEEPER_EVICT_GRACE",
    "LOREKEEPER_SWEEP_SECONDS",
    "LOREKEEPER_UPLOAD_TTL",
    "LOREKEEPER_COLD_WAIT",
    "LOREKEEPER_SNAPSHOT_POLL",
    "LOREKEEPER_NODE_HEARTBEAT",
    "LOREKEEPER_WEBHOOK_NETWORKS",
    "LOREKEEPER_DEBUG",
)


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """A vLLM engine to run: the Python that has vLLM, a model folder, and how the registry calls that model.

    `evaluates`: versions are run on the model when they are validated, too.
    """

    python: Path
    model: Path
    base_model: str
    base_revision: str
    node: str = "embedded"
    gpu_slots: int = 2
    cpu_slots: int = 4
    max_rank: int = 16
    max_model_len: int = 1024
    disk_bytes: int = 20 * 1024**3
    arguments: tuple[str, ...] = ()
    evaluates: bool = True


@dataclass(frozen=True, slots=True)
class Secrets:
    """Values are made at the first start; the signing key and the tokens are written by steps into their files."""

    postgres: PostgresPasswords
    s3: S3Credentials
    valkey: str
    django: str
    signing_key: Path
    bootstrap: Path
    node: Path

    @property
    def trusted_keys(self) -> Path:
        """The public half of the signing key, beside it."""
        return self.signing_key.with_name(f"{self.signing_key.name}.pub")


@dataclass(frozen=True, slots=True)
class StackFacts:
    data: Path
    ports: Mapping[str, int]
    secrets: Secrets
    engine: EngineOptions | None = None
    admin_email: str = "admin@example.org"
    settings: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable

    @property
    def base_models(self) -> Path:
        """Where the validating worker finds base models: <base model>/<revision>."""
        return self.data / "base-models"

    def url(self, name: str) -> str:
        """The base URL of an HTTP process: web, gateway, engine or s3.http."""
        return f"http://{LOOPBACK}:{self.ports[name]}"

    @property
    def inherited(self) -> dict[str, str]:
        """The environment that every Python process gets: nothing of ours but the timings."""
        taken = {key: os.environ[key] for key in (*_INHERITED, *_TIMINGS) if key in os.environ}
        return {**taken, "PYTHONUNBUFFERED": "1", **self.settings}


def settle_facts(
    data: Path,
    *,
    engine: EngineOptions | None = None,
    admin_email: str = "admin@example.org",
    settings: Mapping[str, str] | None = None,
) -> StackFacts:
    """The facts of the stack in this folder: read where they are kept, made and kept where they are new."""
    folder = SecretFolder(data / "secrets")
    facts = StackFacts(
        data=data,
        ports=settle_ports(data / "stack.json", _SERVED_PORTS),
        secrets=Secrets(
            postgres=PostgresPasswords(
                superuser=folder.text("postgres-superuser"),
                owner=folder.text("postgres-owner"),
                app=folder.text("postgres-app"),
                gateway=folder.text("postgres-gateway"),
            ),
            s3=S3Credentials(
                access_key=folder.text("s3-access-key", octets=12),
                secret_key=folder.text("s3-secret-key"),
                internal_key=folder.text("s3-internal-key"),
            ),
            valkey=folder.text("valkey"),
            django=folder.text("django", octets=48),
            signing_key=folder.path("signing.pem"),
            bootstrap=folder.path("bootstrap.json"),
            node=folder.path("node.json"),
        ),
        engine=engine,
        admin_email=admin_email,
        settings=dict(settings or {}),
    )
    if engine is not None:
        _link_base_model(facts, engine)
    return facts


def _link_base_model(facts: StackFacts, engine: EngineOptions) -> None:
    """Let the engine's model be found under the names that it is registered by."""
    link = facts.base_models / engine.base_model / engine.base_revision
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_symlink():
        link.unlink()
    link.symlink_to(engine.model.resolve(), target_is_directory=True)
