"""A tenant's approval policy, and how long an adapter keeps the bytes of its versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.decoding import decode
from client.models import ApprovalPolicy, RetentionPlan, RetentionPolicy
from client.transport import path_of

if TYPE_CHECKING:
    from client.refs import PairRef
    from client.transport import Transport


def _approval(tenant: str) -> str:
    return path_of("tenants", tenant, "approval-policy")


def _retention(adapter: PairRef, *segments: str) -> str:
    return path_of("tenants", adapter.tenant, "adapters", adapter.name, "retention", *segments)


class Policies:
    """Calls on `/tenants/{tenant}/approval-policy` and below an adapter's `/retention`."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def approval(self, tenant: str) -> ApprovalPolicy:
        """Return whose approvals, and how many, the tenant's versions need."""
        return decode(ApprovalPolicy, self._transport.call("GET", _approval(tenant)))

    def set_approval(self, tenant: str, policy: ApprovalPolicy) -> ApprovalPolicy:
        """Replace the tenant's approval policy."""
        body = {
            "required": policy.required,
            "roles": list(policy.roles),
            "only_people": list(policy.only_people),
            "required_people": list(policy.required_people),
            "validity_days": policy.validity_days,
        }
        return decode(ApprovalPolicy, self._transport.call("PUT", _approval(tenant), body=body))

    def retention(self, adapter: PairRef) -> RetentionPolicy:
        """Return the adapter's retention policy; an adapter without one (NotFound) keeps everything."""
        return decode(RetentionPolicy, self._transport.call("GET", _retention(adapter)))

    def set_retention(self, adapter: PairRef, *, keep_days: int, automatic: bool = False) -> RetentionPolicy:
        """Say how many days bytes are kept after they were last of use; removes nothing yet."""
        body = {"keep_days": keep_days, "automatic": automatic}
        return decode(RetentionPolicy, self._transport.call("PUT", _retention(adapter), body=body))

    def plan_retention(self, adapter: PairRef) -> RetentionPlan:
        """Return what the policy would remove now, and why it keeps the rest."""
        return decode(RetentionPlan, self._transport.call("GET", _retention(adapter, "plan")))

    def apply_retention(self, adapter: PairRef, *, digest: str) -> RetentionPlan:
        """Remove exactly what the plan with this digest shows."""
        body = {"digest": digest}
        return decode(RetentionPlan, self._transport.call("POST", _retention(adapter, "apply"), body=body))
