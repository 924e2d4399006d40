"""The commands that go to a node's queue. Their form is what ``workers.node.commands`` reads."""

import math
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from cachecontrol.models import Residency
from registry.models import VersionFile
from registry.naming import object_key
from registry.selectors import probe_reference
from registry.services.keys import signer
from registry.services.stores import artifact_store
from registry.signing.grants import EVICT as EVICT_ACTION
from registry.signing.grants import LOAD, Grant, issue_grant
from registry.states import VersionState
from registry.stores.ports import ArtifactStore

WARM: Final = "node.warm"
EVICT: Final = "node.evict"
GRANT_LIFETIME: Final = timedelta(minutes=9)
_URL_LIFETIME_S: Final = 3600

Command = dict[str, Any]


def warm_command(residency: Residency) -> Command:
    """Everything a node needs to load the version: permission, signatures, and where each file is to be had."""
    version = residency.version
    store = artifact_store()
    files = VersionFile.objects.select_related("artifact").filter(version=version)
    reference = probe_reference(version_id=version.pk)
    return {
        "generation": residency.generation,
        "engine_name": version.engine_name,
        "grant": _grant(residency, LOAD),
        "bundle": version.signature.bundle,
        "attestation": version.signature.attestation,
        "files": [_file(store, file, version.adapter.tenant.name) for file in files],
        "probe_reference": None if reference is None else reference.to_json(),
    }


def evict_command(residency: Residency) -> Command:
    """What a node needs to unload the version: granted too, or whoever writes to the queue could have it done."""
    # A revoked version was not given time to drain before, so its files get that time now.
    drain_s = settings.DRAIN_S if residency.version.state == VersionState.REVOKED else 0
    return {
        "generation": residency.generation,
        "engine_name": residency.version.engine_name,
        "grant": _grant(residency, EVICT_ACTION),
        "grace_s": math.ceil(settings.EVICT_GRACE_S + drain_s),
    }


def _grant(residency: Residency, action: str) -> str:
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
    )
    return issue_grant(signer(), grant)


def _file(store: ArtifactStore, file: VersionFile, tenant: str) -> Command:
    digest = file.artifact.sha256
    return {
        "path": file.path,
        "size": file.artifact.size,
        "sha256": digest,
        "url": store.presign_get(object_key(tenant=tenant, sha256=digest), expires_s=_URL_LIFETIME_S),
    }
