"""The processes and steps of a deployment on one machine. Pure: facts in, a list of specs out."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

from deploy.embedded.ports import LOOPBACK
from deploy.embedded.postgres import APP, DATABASE, GATEWAY, OWNER
from deploy.embedded.seaweed import REGION
from deploy.embedded.specs import AliveHealth, CeleryHealth, FromFile, HttpHealth, ProcessSpec, StepSpec
from deploy.engine.vllm import VllmSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deploy.embedded.facts import EngineOptions, StackFacts
    from deploy.embedded.specs import Spec

SERVICES = ("postgres", "valkey", "s3")
BUCKET = "lorekeeper"
_ENGINE_START_SECONDS = 600.0
_ENGINE_STOP_SECONDS = 3.0


def build_plan(facts: StackFacts) -> tuple[Spec, ...]:
    """Everything but the three services, in the order in which it reads best; `needs` decides about the start."""
    plan: tuple[Spec, ...] = (*_steps(facts), _web(facts), _gateway(facts), *_workers(facts))
    if facts.engine is not None:
        plan += (*_engine_steps(facts, facts.engine), _engine(facts, facts.engine), _agent(facts, facts.engine))
    return plan


def broker_url(facts: StackFacts) -> str:
    return f"redis://:{facts.secrets.valkey}@{LOOPBACK}:{facts.ports['valkey']}/0"


def django_environment(facts: StackFacts, *, role: str = APP) -> dict[str, str]:
    """What a process needs that runs Django, as this database role."""
    return {
        **facts.inherited,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "LOREKEEPER_SECRET_KEY": facts.secrets.django,
        "LOREKEEPER_PUBLIC_URL": facts.url("web"),
        "LOREKEEPER_ALLOWED_HOSTS": f"{LOOPBACK},localhost",
        "LOREKEEPER_DB_HOST": LOOPBACK,
        "LOREKEEPER_DB_PORT": str(facts.ports["postgres"]),
        "LOREKEEPER_DB_NAME": DATABASE,
        "LOREKEEPER_DB_USER": role,
        "LOREKEEPER_DB_PASSWORD": facts.secrets.postgres.of(role),
        "LOREKEEPER_BROKER_URL": broker_url(facts),
        "LOREKEEPER_STORE": "s3",
        "LOREKEEPER_S3_ENDPOINT": facts.url("s3.http"),
        "LOREKEEPER_S3_BUCKET": BUCKET,
        "LOREKEEPER_S3_REGION": REGION,
        "LOREKEEPER_S3_ACCESS_KEY": facts.secrets.s3.access_key,
        "LOREKEEPER_S3_SECRET_KEY": facts.secrets.s3.secret_key,
        "LOREKEEPER_SIGNING_KEY": str(facts.secrets.signing_key),
    }


def _manage(facts: StackFacts, name: str, *arguments: str, needs: tuple[str, ...], role: str = APP) -> StepSpec:
    return StepSpec(
        name=name,
        argv=(facts.python, "manage.py", *arguments),
        environment=django_environment(facts, role=role),
        needs=needs,
    )


def _steps(facts: StackFacts) -> tuple[StepSpec, ...]:
    secrets = facts.secrets
    return (
        _manage(facts, "migrate", "migrate", "--no-input", needs=("postgres",), role=OWNER),
        _manage(facts, "signing", "create_signing_key", str(secrets.signing_key), needs=()),
        _manage(
            facts,
            "bootstrap",
            *("bootstrap", "--admin-email", facts.admin_email, "--data-file", str(secrets.bootstrap)),
            needs=("migrate", "s3"),
        ),
    )


def _web(facts: StackFacts) -> ProcessSpec:
    address = f"{LOOPBACK}:{facts.ports['web']}"
    return ProcessSpec(
        name="web",
        argv=(
            *(facts.python, "-m", "gunicorn", "config.wsgi:application"),
            *("--bind", address, "--workers", "1", "--threads", "8", "--keep-alive", "30", "--no-control-socket"),
        ),
        environment={**django_environment(facts), **_counts_together(facts, "web")},
        health=HttpHealth(f"{facts.url('web')}/readyz"),
        needs=("bootstrap", "signing", "valkey"),
    )


def _gateway(facts: StackFacts) -> ProcessSpec:
    """The gateway has no secret of the control plane: its own role, its own token, nothing else."""
    password = facts.secrets.postgres.of(GATEWAY)
    return ProcessSpec(
        name="gateway",
        argv=(facts.python, "-m", "gateway", "--host", LOOPBACK, "--port", str(facts.ports["gateway"])),
        environment={
            **facts.inherited,
            "LOREKEEPER_GATEWAY_DB_URL": f"postgresql://{GATEWAY}:{password}@{LOOPBACK}:{facts.ports['postgres']}/{DATABASE}",
            "LOREKEEPER_WEB_URL": facts.url("web"),
            "LOREKEEPER_GATEWAY_TOKEN": FromFile(facts.secrets.bootstrap, "gateway_token"),
            "LOREKEEPER_GATEWAY_STATE_FOLDER": str(facts.data / "gateway"),
        },
        health=HttpHealth(f"{facts.url('gateway')}/readyz"),
        needs=("bootstrap",),
    )


def _workers(facts: StackFacts) -> tuple[ProcessSpec, ...]:
    needs = ("bootstrap", "signing", "valkey")
    schedule = str(facts.data / "celerybeat-schedule")
    celery = (facts.python, "-m", "celery", "-A", "config.celery")
    evaluates = facts.engine is not None and facts.engine.evaluates
    bases = {"LOREKEEPER_BASE_MODEL_FOLDERS": str(facts.base_models)} if evaluates else {}
    return (
        _worker(facts, "validate", concurrency=1, more=bases),
        # Webhooks take one of the places at most, however slow a receiver is.
        _worker(facts, "control", "webhooks", concurrency=3),
        ProcessSpec(
            name="beat",
            argv=(*celery, "beat", "-s", schedule, "--pidfile", ""),
            environment=django_environment(facts),
            health=AliveHealth(),
            needs=needs,
        ),
    )


def _worker(
    facts: StackFacts, queue: str, *others: str, concurrency: int, more: Mapping[str, str] | None = None
) -> ProcessSpec:
    """A worker that is named after the first of its queues."""
    return ProcessSpec(
        name=queue,
        argv=(
            *(facts.python, "-m", "celery", "-A", "config.celery", "worker"),
            *("-Q", ",".join((queue, *others)), "-n", f"{queue}@%h", "--concurrency", str(concurrency)),
        ),
        environment={
            **django_environment(facts),
            **_counts_together(facts, queue),
            "LOREKEEPER_METRICS": f"{LOOPBACK}:{facts.ports[f'{queue}.metrics']}",
            **(more or {}),
        },
        health=CeleryHealth(broker_url=broker_url(facts), node=f"{queue}@{socket.gethostname()}"),
        needs=("bootstrap", "signing", "valkey"),
    )


def _counts_together(facts: StackFacts, service: str) -> dict[str, str]:
    """Where the processes of a service add up what they count."""
    return {"LOREKEEPER_METRICS_FOLDER": str(facts.data / "metrics" / service)}


def _engine_steps(facts: StackFacts, engine: EngineOptions) -> tuple[StepSpec, ...]:
    revision = (engine.base_model, engine.base_revision)
    return (
        _manage(
            facts,
            "base-model",
            *("register_base_model", "--name", revision[0], "--revision", revision[1], "--folder", str(engine.model)),
            needs=("bootstrap",),
        ),
        _manage(
            facts,
            "node",
            *("register_embedded_node", "--name", engine.node, "--engine-url", facts.url("engine")),
            *("--base-model", revision[0], "--base-revision", revision[1], "--data-file", str(facts.secrets.node)),
            *("--gpu-slots", str(engine.gpu_slots), "--cpu-slots", str(engine.cpu_slots)),
            *("--max-rank", str(engine.max_rank), "--disk-bytes", str(engine.disk_bytes)),
            needs=("base-model",),
        ),
    )


def _engine(facts: StackFacts, engine: EngineOptions) -> ProcessSpec:
    """vLLM, on the loopback interface: whoever reaches its port may load anything into it."""
    vllm = VllmSpec(
        python=engine.python,
        model=engine.model,
        port=facts.ports["engine"],
        served_name=engine.base_model,
        gpu_slots=engine.gpu_slots,
        cpu_slots=engine.cpu_slots,
        max_rank=engine.max_rank,
        max_model_len=engine.max_model_len,
    )
    return ProcessSpec(
        name="engine",
        argv=(*vllm.command(), *engine.arguments),
        environment=vllm.environment(facts.inherited),
        health=HttpHealth(f"{facts.url('engine')}/health"),
        folder=facts.data,  # not the repository: its packages would stand before the engine's own
        start_seconds=_ENGINE_START_SECONDS,
        # It gives up its requests at once when it is asked to end, and then waits for who doesn't hear of it.
        stop_seconds=_ENGINE_STOP_SECONDS,
    )


def _restart_command(facts: StackFacts, name: str) -> list[str]:
    return [facts.python, "-m", "deploy.embedded", "restart", name, "--data", str(facts.data)]


def _agent(facts: StackFacts, engine: EngineOptions) -> ProcessSpec:
    """The agent has no database access and no signing key: public keys, its token, its queue."""
    return ProcessSpec(
        name="agent",
        argv=(facts.python, "-m", "workers.node"),
        environment={
            **facts.inherited,
            "LOREKEEPER_NODE_DISK_BYTES": str(engine.disk_bytes),
            "LOREKEEPER_NODE_NAME": engine.node,
            "LOREKEEPER_NODE_TOKEN": FromFile(facts.secrets.node, "node_token"),
            "LOREKEEPER_WEB_URL": facts.url("web"),
            "LOREKEEPER_BROKER_URL": broker_url(facts),
            "LOREKEEPER_NODE_CACHE": str(facts.data / "cache"),
            "LOREKEEPER_NODE_ENGINE": "vllm",
            "LOREKEEPER_NODE_ENGINE_URL": facts.url("engine"),
            "LOREKEEPER_NODE_ENGINE_RESTART": json.dumps(_restart_command(facts, "engine")),
            "LOREKEEPER_NODE_BASE_MODEL": engine.base_model,
            "LOREKEEPER_TRUSTED_KEYS": str(facts.secrets.trusted_keys),
            "LOREKEEPER_NODE_METRICS": f"{LOOPBACK}:{facts.ports['agent.metrics']}",
        },
        health=AliveHealth(2.0),
        needs=("node", "signing", "web", "engine"),
    )
