import base64
import hashlib
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from deploy.embedded.ports import free_port
from deploy.embedded.seaweed import PORT_NAMES, S3Credentials, SeaweedServer

pytestmark = pytest.mark.e2e


def ports() -> dict[str, int]:
    chosen: dict[str, int] = {}
    for name in PORT_NAMES:
        chosen[name] = free_port(avoid=chosen.values())
    return chosen


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedServer]:
    credentials = S3Credentials(access_key="access", secret_key="secret", internal_key="internal")
    with SeaweedServer(tmp_path_factory.mktemp("s3"), ports=ports(), credentials=credentials) as made:
        yield made


def put(server: SeaweedServer, key: str, content: bytes, *, declared: bytes | None = None) -> httpx.Response:
    """PUT by a presigned URL for the digest of `declared` (default: what is sent), never over an existing object."""
    wanted = content if declared is None else declared
    digest = base64.b64encode(hashlib.sha256(wanted).digest()).decode()
    client = server.client()
    url = client.generate_presigned_url(
        "put_object",
        Params={"Bucket": server.bucket, "Key": key, "ChecksumSHA256": digest, "IfNoneMatch": "*"},
        ExpiresIn=60,
    )
    client.close()
    return httpx.put(url, content=content, headers={"x-amz-checksum-sha256": digest, "If-None-Match": "*"})


def read(server: SeaweedServer, key: str) -> bytes:
    client = server.client()
    with client.get_object(Bucket=server.bucket, Key=key)["Body"] as body:
        content = bytes(body.read())
    client.close()
    return content


def test_a_presigned_put_of_other_bytes_than_declared_is_refused_and_nothing_is_stored(server: SeaweedServer) -> None:
    refused = put(server, "wrong", b"other bytes", declared=b"declared!!!")
    assert refused.status_code == 400
    assert "BadDigest" in refused.text
    assert put(server, "wrong", b"declared!!!").status_code == 200
    assert read(server, "wrong") == b"declared!!!"


def test_a_stored_object_is_never_overwritten(server: SeaweedServer) -> None:
    assert put(server, "once", b"first").status_code == 200
    assert put(server, "once", b"second").status_code == 412
    assert read(server, "once") == b"first"


def test_a_presigned_url_is_good_for_its_key_and_digest_only(server: SeaweedServer) -> None:
    client = server.client()
    digest = base64.b64encode(hashlib.sha256(b"mine").digest()).decode()
    url = client.generate_presigned_url(
        "put_object", Params={"Bucket": server.bucket, "Key": "mine", "ChecksumSHA256": digest}, ExpiresIn=60
    )
    client.close()
    other = base64.b64encode(hashlib.sha256(b"evil").digest()).decode()
    assert httpx.put(url, content=b"evil", headers={"x-amz-checksum-sha256": other}).status_code == 403
    moved = url.replace("/mine?", "/theirs?")
    assert httpx.put(moved, content=b"mine", headers={"x-amz-checksum-sha256": digest}).status_code == 403


def test_strangers_get_in_neither_by_s3_nor_behind_it(server: SeaweedServer) -> None:
    put(server, "private", b"private")
    assert httpx.get(f"{server.endpoint}/{server.bucket}/private").status_code == 403
    filer = f"http://127.0.0.1:{server._ports['s3.filer']}/buckets/{server.bucket}/private"
    assert httpx.get(filer).status_code == 401
    assert httpx.delete(filer).status_code == 401


def test_it_listens_on_the_loopback_interface_alone(server: SeaweedServer) -> None:
    listening = [c.laddr.ip for c in psutil.Process(server.pid).net_connections() if c.status == psutil.CONN_LISTEN]
    assert set(listening) == {"127.0.0.1"}


def test_an_acknowledged_object_survives_sigkill_a_stop_and_new_ports(server: SeaweedServer) -> None:
    assert put(server, "kept", b"still here").status_code == 200
    server.kill()
    begun = time.monotonic()
    assert server.wait() == -signal.SIGKILL
    server.launch()
    print(f"s3 is back after {time.monotonic() - begun:.2f} s")
    assert read(server, "kept") == b"still here"
    server.stop()
    server._ports = ports()
    server.start()
    assert read(server, "kept") == b"still here"
    assert put(server, "after", b"new").status_code == 200


def test_no_socket_is_left_in_the_temporary_folder(server: SeaweedServer) -> None:
    server.restart()
    used = [str(port) for port in server._ports.values()]
    server.stop()
    left = [file for file in Path("/tmp").glob("seaweedfs-*.sock") if any(port in file.name for port in used)]
    assert left == []
    server.start()


def test_a_proxy_of_the_environment_is_not_asked_for_the_store(
    server: SeaweedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    server.settle()
