"""Policies as people write them."""

BASE = "llama-3.1-8b-instruct"
FULL = """\
base_model: llama-3.1-8b-instruct
adapter_cache:
  gpu_hot:  {max_adapters: 16, max_memory_gb: 4, eviction_policy: weighted_lru}
  cpu_warm: {max_adapters: 256, max_memory_gb: 64, ttl_minutes: 120}
  disk_cache: {max_size_gb: 500, verify_checksum: true}
  registry: {require_signature: true, allow_unapproved_adapter: false}
  placement: {key_fields: [tenant_id, adapter_id, adapter_version, base_model_revision]}
"""


def policy(more: str = "") -> str:
    return f"base_model: {BASE}\n{more}"
