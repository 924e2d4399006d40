"""Checkpoints in every store: never overwritten, found in order, locked where the bucket can."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from deploy.embedded.seaweed import SeaweedServer
from registry.stores.checkpoints import CheckpointStore, FolderCheckpoints, KeptCheckpoint, after_seq, checkpoint_key
from registry.stores.checkpoints_s3 import S3Checkpoints
from registry.stores.errors import BadKey, ObjectMissing, StoreUnavailable

KEY_ID = "ab" * 32


@pytest.fixture
def chain() -> str:
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture(params=["folder", "s3"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStore:
    if request.param == "folder":
        return FolderCheckpoints(tmp_path / "store")
    s3: SeaweedServer = request.getfixturevalue("s3")
    return S3Checkpoints(s3.client(), bucket=s3.bucket, lock_for=timedelta(days=1))


def key(chain: str, seq: int) -> str:
    return checkpoint_key(chain=chain, seq=seq, key_id=KEY_ID)


def test_what_was_kept_is_read_back(kept: CheckpointStore, chain: str) -> None:
    assert kept.put(key(chain, 7), b"{}") == KeptCheckpoint(is_new=True)
    assert kept.read(key(chain, 7)) == b"{}"


def test_what_lies_there_stays(kept: CheckpointStore, chain: str) -> None:
    kept.put(key(chain, 7), b"first")
    assert not kept.put(key(chain, 7), b"second").is_new
    assert kept.read(key(chain, 7)) == b"first"


def test_what_is_not_there_is_missing(kept: CheckpointStore, chain: str) -> None:
    with pytest.raises(ObjectMissing):
        kept.read(key(chain, 1))


def test_they_are_found_in_the_order_of_their_records(kept: CheckpointStore, chain: str) -> None:
    for seq in (10, 9, 100):
        kept.put(key(chain, seq), b"{}")
    kept.put(key(f"{chain}x", 11), b"{}")
    assert all_of(kept, chain) == [key(chain, seq) for seq in (9, 10, 100)]
    assert kept.first_after(chain, after_seq(chain, 9)) == key(chain, 10)


def test_several_of_one_record_are_all_found(kept: CheckpointStore, chain: str) -> None:
    keys = [checkpoint_key(chain=chain, seq=7, key_id=key_id * 32) for key_id in ("aa", "bb")]
    for each in keys:
        kept.put(each, b"{}")
    assert all_of(kept, chain) == keys


def test_what_has_another_name_is_passed_over(s3: SeaweedServer, chain: str) -> None:
    client = s3.client()
    kept = S3Checkpoints(client, bucket=s3.bucket, lock_for=timedelta(0))
    for name in ("0", "0000000000000001-x.json", "notes.txt"):
        client.put_object(Bucket=s3.bucket, Key=f"audit/{chain}/{name}", Body=b"")
    kept.put(key(chain, 2), b"{}")
    assert all_of(kept, chain) == [key(chain, 2)]


def all_of(kept: CheckpointStore, chain: str) -> list[str]:
    found: list[str] = []
    while (place := kept.first_after(chain, found[-1] if found else "")) is not None:
        found.append(place)
    return found


@pytest.mark.parametrize("bad", ["artifacts/acme/ab/" + "ab" * 32, "audit/../../etc/passwd", "audit/acme/7.json"])
def test_other_keys_are_refused(kept: CheckpointStore, bad: str) -> None:
    for act in (lambda: kept.put(bad, b""), lambda: kept.read(bad)):
        with pytest.raises(BadKey):
            act()


@pytest.fixture
def locked(s3: SeaweedServer) -> Iterator[S3Checkpoints]:
    bucket = "checkpoints-locked"
    client = s3.client()
    if bucket not in {found["Name"] for found in client.list_buckets()["Buckets"]}:
        client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    yield S3Checkpoints(client, bucket=bucket, lock_for=timedelta(days=2))
    client.close()


def test_a_bucket_with_a_lock_holds_them_against_everybody(locked: S3Checkpoints, chain: str) -> None:
    done = locked.put(key(chain, 1), b"{}")
    assert done.locked_until is not None
    assert timedelta(days=1) < done.locked_until - datetime.now(UTC) <= timedelta(days=2)
    assert not locked.put(key(chain, 1), b"other").is_new
    client, bucket = locked._client, locked._bucket
    (version,) = client.list_object_versions(Bucket=bucket, Prefix=key(chain, 1))["Versions"]
    with pytest.raises(ClientError, match="AccessDenied"):
        client.delete_object(Bucket=bucket, Key=key(chain, 1), VersionId=version["VersionId"])


def test_without_days_no_lock_is_asked_for(locked: S3Checkpoints, chain: str) -> None:
    unlocked = S3Checkpoints(locked._client, bucket=locked._bucket, lock_for=timedelta(0))
    assert unlocked.put(key(chain, 1), b"{}") == KeptCheckpoint(is_new=True)


def test_a_store_that_fails_at_a_lock_keeps_them_without(s3: SeaweedServer, chain: str) -> None:
    store = S3Checkpoints(s3.client(), bucket=s3.bucket, lock_for=timedelta(days=1))
    store._has_lock = True
    assert store.put(key(chain, 1), b"{}") == KeptCheckpoint(is_new=True)
    assert store.read(key(chain, 1)) == b"{}"


def test_a_folder_that_fails_says_so(chain: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable):
        FolderCheckpoints(tmp_path / "file").put(key(chain, 1), b"")
