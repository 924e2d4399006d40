"""The registry's published keys, and what pipelines sign with keys of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.decoding import decode, decode_list
from client.models import PipelineKey, PipelineSignature, PublicKey
from client.pages import read_all
from client.transport import path_of

if TYPE_CHECKING:
    from client.refs import VersionRef
    from client.transport import Transport


class Keys:
    """Calls below `/keys`, `/tenants/{tenant}/pipeline-keys` and a version's `pipeline-signatures`."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def published(self) -> tuple[PublicKey, ...]:
        """Return the published signing keys; trust none of them only because the server says so."""
        answer = self._transport.call("GET", path_of("keys"))
        return decode_list(PublicKey, answer.get("keys") if isinstance(answer, dict) else answer)

    def register(self, tenant: str, *, name: str, public_key: str) -> PipelineKey:
        """Trust a pipeline's public key (PEM) in a tenant (platform admin)."""
        body = {"name": name, "public_key": public_key}
        return decode(PipelineKey, self._transport.call("POST", path_of("tenants", tenant, "pipeline-keys"), body=body))

    def registered(self, tenant: str) -> tuple[PipelineKey, ...]:
        """Return the tenant's pipeline keys, revoked ones too."""
        return read_all(PipelineKey, self._transport, path_of("tenants", tenant, "pipeline-keys"))

    def revoke(self, tenant: str, key_id: str, *, reason: str) -> PipelineKey:
        """Trust nothing any more that was signed with this pipeline key (platform admin)."""
        path = path_of("tenants", tenant, "pipeline-keys", key_id, "revoke")
        return decode(PipelineKey, self._transport.call("POST", path, body={"reason": reason}))

    def require_pipeline_signature(self, tenant: str, *, required: bool) -> bool:
        """Say whether versions need their pipeline's signature to be approved (platform admin); return what holds."""
        path = path_of("tenants", tenant, "signing-policy")
        answer = self._transport.call("PUT", path, body={"require_pipeline_signature": required})
        return isinstance(answer, dict) and answer.get("require_pipeline_signature") is True

    def attach(self, ref: VersionRef, bundle: str) -> PipelineSignature:
        """Attach the bundle (its text) that a pipeline made over the version's files."""
        answer = self._transport.call("POST", _signatures(ref), body={"bundle": bundle})
        return decode(PipelineSignature, answer)

    def attached(self, ref: VersionRef) -> tuple[PipelineSignature, ...]:
        """Return the bundles that pipelines made over the version's files."""
        return read_all(PipelineSignature, self._transport, _signatures(ref))


def _signatures(ref: VersionRef) -> str:
    return path_of("tenants", ref.tenant, "adapters", ref.adapter, "versions", ref.version, "pipeline-signatures")
