"""Cache policies of base models: proposals, what is in force, and what each tenant may hold and does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from client.decoding import decode
from client.pages import read_all
from client.transport import path_of

if TYPE_CHECKING:
    from client.transport import Transport


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """One policy by its number; `text`, `document` and `in_force` (0: the defaults) only where one was asked for."""

    base_model: str
    number: int
    state: str
    digest: str
    proposed_by: str
    proposed_at: str
    comment: str = ""
    decided_by: str | None = None
    decided_at: str | None = None
    reason: str = ""
    activated_at: str | None = None
    text: str = ""
    document: dict[str, object] = field(default_factory=dict)
    in_force: int = 0


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """What holds for a base model now; `number` 0: the built-in defaults."""

    base_model: str
    number: int
    document: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """One value that differs."""

    path: str
    before: object = None
    after: object = None


@dataclass(frozen=True, slots=True)
class PolicyDiff:
    """What changes from policy `before` (0: the built-in defaults) to policy `after`."""

    base_model: str
    before: int
    after: int
    changes: tuple[PolicyChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Amount:
    """What is guaranteed, what is allowed (null: everything) and what is held."""

    used: int
    floor: int = 0
    ceiling: int | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """What is allowed (null: no limit) and what there is."""

    used: int
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class CacheQuota:
    """A tenant's part of a base model's nodes."""

    base_model: str
    tenant: str
    sla: str
    priority_weight: int
    wait_s: float
    gpu_slots: Amount
    cpu_bytes: Amount
    disk_bytes: Amount
    loads_per_minute: Rate
    queue_places: Rate


class CachePolicies:
    """Calls below `/base-models/{base model}/cache-…` and a tenant's `/cache-quota`."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def propose(self, base_model: str, text: str, *, comment: str = "") -> CachePolicy:
        """Propose a policy, as YAML; what means the same as one that is alive is that one."""
        body = {"text": text, "comment": comment}
        return decode(CachePolicy, self._transport.call("POST", _policies(base_model), body=body, idempotent=True))

    def all(self, base_model: str, *, state: str | None = None) -> tuple[CachePolicy, ...]:
        """Return every policy that was ever proposed, newest first."""
        filters = {} if state is None else {"state": state}
        return read_all(CachePolicy, self._transport, _policies(base_model), filters=filters)

    def get(self, base_model: str, number: int) -> CachePolicy:
        """Return one policy with its text."""
        return decode(CachePolicy, self._transport.call("GET", _policies(base_model, str(number))))

    def in_force(self, base_model: str) -> PolicyInForce:
        """Return what holds now."""
        return decode(PolicyInForce, self._transport.call("GET", path_of("base-models", base_model, "cache-policy")))

    def diff(self, base_model: str, number: int, *, against: int | None = None) -> PolicyDiff:
        """Return what the policy changes of another one (0: the built-in defaults; None: what is in force)."""
        params: dict[str, str | int] = {} if against is None else {"against": against}
        return decode(
            PolicyDiff, self._transport.call("GET", _policies(base_model, str(number), "diff"), params=params)
        )

    def approve(
        self, base_model: str, number: int, *, digest: str, against: int | None = None, reason: str = ""
    ) -> CachePolicy:
        """Put a proposal in force; refused if another one than `against` is in force by now."""
        body: dict[str, object] = {"digest": digest, "reason": reason}
        if against is not None:
            body["against"] = against
        answer = self._transport.call("POST", _policies(base_model, str(number), "approve"), body=body, idempotent=True)
        return decode(CachePolicy, answer)

    def decline(self, base_model: str, number: int, *, reason: str) -> CachePolicy:
        """Refuse a proposal for good, or take one's own back."""
        path = _policies(base_model, str(number), "decline")
        return decode(CachePolicy, self._transport.call("POST", path, body={"reason": reason}, idempotent=True))

    def roll_back(self, base_model: str, *, to: int, reason: str = "") -> PolicyInForce:
        """Put in force again what was approved earlier, or with 0 the built-in defaults."""
        path = path_of("base-models", base_model, "cache-policy", "roll-back")
        answer = self._transport.call("POST", path, body={"to": to, "reason": reason}, idempotent=True)
        return decode(PolicyInForce, answer)

    def quotas(self, base_model: str) -> tuple[CacheQuota, ...]:
        """Return every tenant's quota and use of a base model's nodes (platform admin)."""
        return read_all(CacheQuota, self._transport, path_of("base-models", base_model, "cache-quotas"))

    def quotas_of(self, tenant: str) -> tuple[CacheQuota, ...]:
        """Return a tenant's quotas and use, one for each base model."""
        return read_all(CacheQuota, self._transport, path_of("tenants", tenant, "cache-quota"))


def _policies(base_model: str, *segments: str) -> str:
    return path_of("base-models", base_model, "cache-policies", *segments)
