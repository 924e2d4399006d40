import hashlib
import io
import socket
from urllib.parse import parse_qs, urlsplit

import pytest

from deploy.embedded.seaweed import SeaweedServer
from registry.naming import object_key
from registry.stores.errors import StoreRefused, StoreUnavailable
from registry.stores.s3 import S3Store

BODY = b"bytes"
SHA = hashlib.sha256(BODY).hexdigest()
KEY = object_key(tenant="acme", sha256=SHA)


def test_the_signature_of_a_presigned_put_covers_digest_length_and_no_overwrite(s3_store: S3Store) -> None:
    put = s3_store.presign_put(KEY, size=5, sha256=SHA, expires_s=60)
    signed = set(parse_qs(urlsplit(put.url).query)["X-Amz-SignedHeaders"][0].split(";"))
    assert signed == {"host", *(name.lower() for name in put.headers)}
    assert signed >= {"content-length", "if-none-match", "x-amz-checksum-sha256"}


def test_wrong_credentials_are_refused_and_not_worth_another_try(s3_store: S3Store, s3: SeaweedServer) -> None:
    stranger = S3Store(endpoint=s3.endpoint, bucket=s3_store._bucket, access_key="x", secret_key="y")
    with pytest.raises(StoreRefused) as caught:
        stranger.put_stream(KEY, io.BytesIO(BODY), size=5, sha256=SHA)
    assert not caught.value.retryable


def test_a_store_that_does_not_answer_is_worth_another_try() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    store = S3Store(endpoint=f"http://127.0.0.1:{port}", bucket="test", access_key="x", secret_key="y")
    with pytest.raises(StoreUnavailable) as caught:
        store.stat(KEY)
    assert caught.value.retryable


def test_an_object_that_somebody_else_put_without_a_digest_is_not_vouched_for(s3_store: S3Store) -> None:
    s3_store._client.put_object(Bucket=s3_store._bucket, Key=KEY, Body=b"other")
    with pytest.raises(StoreRefused, match="SHA-256"):
        s3_store.stat(KEY)


def test_presigned_urls_point_at_the_public_endpoint(s3: SeaweedServer) -> None:
    store = S3Store(
        endpoint=s3.endpoint,
        bucket="test",
        access_key="x",
        secret_key="y",
        public_endpoint="https://artifacts.example.com",
    )
    assert store.presign_get(KEY, expires_s=5).startswith("https://artifacts.example.com/test/artifacts/")
