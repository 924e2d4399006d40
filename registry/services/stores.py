from datetime import timedelta
from functools import cache

from django.conf import settings

from registry.stores.checkpoints import CheckpointStore, FolderCheckpoints
from registry.stores.checkpoints_s3 import S3Checkpoints
from registry.stores.folder import FolderStore
from registry.stores.ports import ArtifactStore
from registry.stores.s3 import S3Store, connect_s3


@cache
def artifact_store() -> ArtifactStore:
    """The store the settings name; one per process."""
    if settings.STORE["kind"] == "s3":
        return S3Store(
            endpoint=settings.STORE["endpoint"],
            bucket=settings.STORE["bucket"],
            access_key=settings.STORE["access_key"],
            secret_key=settings.STORE["secret_key"],
            region=settings.STORE["region"],
            public_endpoint=settings.STORE["public_endpoint"] or None,
        )
    return folder_store()


@cache
def checkpoint_store() -> CheckpointStore:
    """Where signed checkpoints of the audit log lie: a bucket, or the folder of the artifacts."""
    if settings.STORE["kind"] != "s3":
        return FolderCheckpoints(settings.STORE["folder"])
    client = connect_s3(
        settings.STORE["endpoint"],
        access_key=settings.STORE["access_key"],
        secret_key=settings.STORE["secret_key"],
        region=settings.STORE["region"],
    )
    return S3Checkpoints(client, bucket=settings.AUDIT_BUCKET, lock_for=timedelta(days=settings.AUDIT_LOCK_DAYS))


@cache
def folder_store() -> FolderStore:
    return FolderStore(
        folder=settings.STORE["folder"], public_url=settings.PUBLIC_URL, secret=settings.SECRET_KEY.encode()
    )
