"""The cache policy of a run, and how it comes into force: one platform admin proposes, another approves."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from bench.cache.base import BASE_NAME
from client.sdk import LorekeeperClient
from deploy.embedded.plan import build_plan

if TYPE_CHECKING:
    from bench.cache.plan import Plan
    from deploy.embedded.stack import Stack

_SECOND = "second-admin@example.org"


def policy_text(plan: Plan) -> str:
    """Half-life and least residency are as much shorter than the defaults as the run is shorter than a day."""
    return f"""\
base_model: {BASE_NAME}
adapter_cache:
  gpu_hot: {{max_adapters: {plan.gpu_slots}, eviction_policy: density}}
  cpu_warm: {{max_adapters: {plan.places}}}
  disk_cache: {{high_water: 1.0, low_water: 0.97}}
loading: {{min_residency_s: 0.05, concurrent_loads_per_node: 3}}
scoring: {{half_life_minutes: 0.5}}
quotas:
  default: {{gpu_slots: {{ceiling: 1}}, cpu_mb: {{ceiling: 1}}, loads_per_minute: 240}}
"""


def put_in_force(stack: Stack, base_model: str, text: str) -> int:
    """Propose the policy and have it approved; its number."""
    tokens = json.loads(stack.facts.secrets.bootstrap.read_text())
    with LorekeeperClient(stack.urls["web"], tokens["admin_token"]) as admin:
        proposed = admin.cache_policies.propose(base_model, text)
    with LorekeeperClient(stack.urls["web"], _token_of_another(stack)) as other:
        other.cache_policies.approve(base_model, proposed.number, digest=proposed.digest)
    return proposed.number


def _token_of_another(stack: Stack) -> str:
    """A second platform admin is made as the first one was."""
    file = stack.data / "second-admin.json"
    step = next(spec for spec in build_plan(stack.facts) if spec.name == "bootstrap")
    command = [*step.argv[:3], "--admin-email", _SECOND, "--data-file", str(file)]
    subprocess.run(command, cwd=step.folder, env=stack.env_for("bootstrap"), check=True, capture_output=True)
    return str(json.loads(file.read_text())["admin_token"])
