"""The commands that go to a node's queue. Their form is what ``workers.node.commands`` reads."""

import math
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from cachecontrol.engines import CAPABILITIES
from cachecontrol.models import Node, Residency
from cachecontrol.policies import active_policy
from cachecontrol.services.pins import pinned_versions
from cachecontrol.states import Desired, EngineKind, Observed
from registry.models import VersionFile
from registry.naming import object_key
from registry.selectors import probe_reference
from registry.services.keys import signer
from registry.services.stores import artifact_store
from registry.signing.grants import EVICT as EVICT_ACTION
from registry.signing.grants import FETCH as FETCH_ACTION
from registry.signing.grants import LOAD, Grant, command_digest, issue_grant
from registry.states import VersionState
from registry.stores.ports import ArtifactStore

WARM: Final = "node.warm"
FETCH: Final = "node.fetch"
EVICT: Final = "node.evict"
GRANT_LIFETIME: Final = timedelta(minutes=9)
_URL_LIFETIME_S: Final = 3600
_IN_ENGINE: Final = (Observed.LOADED.value, Observed.DRAINING.value)
_MOST_LEAVING: Final = 64

Command = dict[str, Any]


def warm_command(residency: Residency) -> Command:
    """Everything a node needs to load the version: permission, signatures, and where each file is to be had."""
    reference = probe_reference(version_id=residency.version_id)
    command = {**_files_command(residency), "probe_reference": None if reference is None else reference.to_json()}
    # Said only where it means something: an agent of an older release knows no such field.
    pin = {"pinned": True} if _is_pinned(residency) else {}
    leaving = _leaving(residency.node) if watches_use(residency.node) else []
    way = {"leaving": leaving} if leaving else {}
    return _granted(residency, LOAD, {**command, **pin, **way})


def fetch_command(residency: Residency) -> Command:
    """The same to bring the files to the node's disk, verified, and nothing into its engine."""
    return _granted(residency, FETCH_ACTION, _files_command(residency))


def evict_command(residency: Residency) -> Command:
    """What a node needs to unload the version: granted too, or whoever writes to the queue could have it done.

    ``drain_s`` is how long it may wait for the last request to end, where it can see that; the files go after
    ``grace_s``, unless they are wanted.
    """
    is_revoked = residency.version.state == VersionState.REVOKED
    # A revoked version was not given time to drain before, so its files get that time now.
    grace_s = settings.EVICT_GRACE_S + (settings.DRAIN_S if is_revoked else 0)
    command = {
        "generation": residency.generation,
        "engine_name": residency.version.engine_name,
        "to": "disk" if residency.desired == Desired.DISK else "absent",
        "drain_s": settings.DRAIN_S if watches_use(residency.node) and not is_revoked else 0,
        "grace_s": math.ceil(grace_s),
    }
    return _granted(residency, EVICT_ACTION, command)


def watches_use(node: Node) -> bool:
    """Whether the node can tell that no request runs or waits for an adapter any more."""
    return CAPABILITIES[EngineKind(node.engine_kind)].reports_in_use


def _leaving(node: Node) -> list[dict[str, Any]]:
    """Who is still in the node's engine and is to leave it: a node that can have them go before the newcomer comes."""
    found = Residency.objects.filter(node=node, observed__in=_IN_ENGINE).exclude(desired=Desired.GPU.value)
    rows = found.order_by("pk").values_list("version__engine_name", "generation")[:_MOST_LEAVING]
    return [{"engine_name": name, "generation": generation} for name, generation in rows]


def _is_pinned(residency: Residency) -> bool:
    """Whether the policy pins it, on an engine that can keep it in its slot."""
    if not CAPABILITIES[EngineKind(residency.node.engine_kind)].pins:
        return False
    return residency.version_id in pinned_versions(active_policy(residency.node).document)


def _files_command(residency: Residency) -> Command:
    version = residency.version
    store = artifact_store()
    files = VersionFile.objects.select_related("artifact").filter(version=version)
    return {
        "generation": residency.generation,
        "engine_name": version.engine_name,
        "bundle": version.signature.bundle,
        "attestation": version.signature.attestation,
        "files": [_file(store, file, version.adapter.tenant.name) for file in files],
    }


def _granted(residency: Residency, action: str, command: Command) -> Command:
    """The command with a grant for just this, to be sent as it is."""
    version = residency.version
    grant = Grant(
        node=residency.node.name,
        version_id=str(version.pk),
        engine_name=version.engine_name,
        tenant=version.adapter.tenant.name,
        adapter=version.adapter.name,
        version=version.name,
        base_revision=version.base_revision.digest,
        root_digest=version.root_digest,
        generation=residency.generation,
        expires_at=timezone.now() + GRANT_LIFETIME,
        action=action,
        command=command_digest(command),
    )
    return {**command, "grant": issue_grant(signer(), grant)}


def _file(store: ArtifactStore, file: VersionFile, tenant: str) -> Command:
    digest = file.artifact.sha256
    return {
        "path": file.path,
        "size": file.artifact.size,
        "sha256": digest,
        "url": store.presign_get(object_key(tenant=tenant, sha256=digest), expires_s=_URL_LIFETIME_S),
    }
