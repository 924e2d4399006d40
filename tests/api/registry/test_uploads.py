import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from registry.models import Adapter, AuditRecord, Version
from registry.states import Role
from tests.api.registry.conftest import put_file
from tests.factories.adapters import adapter_files, manifest_of

URL = "/api/v1/tenants/acme/adapters/support-tone/versions"
PUSH = "/api/v1/tenants/acme/adapters/support-tone/push"
Caller = Callable[..., APIClient]
pytestmark = pytest.mark.django_db(transaction=True)


def start(client: APIClient, files: dict[str, bytes], **more: Any) -> Any:
    body = {"base_revision": "r1", "files": manifest_of(files), **more}
    return client.post(URL, body, format="json")


def test_an_upload_gets_an_address_for_each_file_and_a_dated_name(
    as_role: Caller, adapter: Adapter, store: object, sent: list[Any]
) -> None:
    answer = start(as_role(Role.UPLOADER), adapter_files())
    assert answer.status_code == 201
    assert answer.json()["name"].endswith(".1")
    assert answer.json()["state"] == "uploading"
    assert {target["path"] for target in answer.json()["uploads"]} == set(adapter_files())


def test_a_second_upload_of_the_day_counts_on(
    as_role: Caller, adapter: Adapter, store: object, sent: list[Any]
) -> None:
    first = start(as_role(Role.UPLOADER), adapter_files(seed=1))
    second = start(as_role(Role.UPLOADER), adapter_files(seed=2))
    assert first.json()["name"].endswith(".1")
    assert second.json()["name"].endswith(".2")


def test_the_same_upload_again_is_resumed_not_doubled(
    as_role: Caller, adapter: Adapter, store: object, sent: list[Any]
) -> None:
    first = start(as_role(Role.UPLOADER), adapter_files())
    again = start(as_role(Role.UPLOADER), adapter_files())
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]


def test_a_name_with_other_content_is_refused_for_ever(
    as_role: Caller, adapter: Adapter, store: object, sent: list[Any]
) -> None:
    start(as_role(Role.UPLOADER), adapter_files(seed=1), name="v1")
    other = start(as_role(Role.UPLOADER), adapter_files(seed=2), name="v1")
    assert other.status_code == 409
    assert other.json()["code"] == "version_exists"
    assert other.json()["field"] == "name"


def test_finalize_names_the_file_that_has_not_arrived(
    as_role: Caller, adapter: Adapter, store: object, sent: list[Any]
) -> None:
    client = as_role(Role.UPLOADER)
    started = start(client, adapter_files(), name="v1").json()
    target = next(item for item in started["uploads"] if item["path"] == "adapter_config.json")
    put_file(client, target, adapter_files()["adapter_config.json"])
    answer = client.post(f"{URL}/v1/finalize")
    assert answer.status_code == 409
    assert answer.json()["code"] == "upload_incomplete"
    assert answer.json()["field"] == "adapter_model.safetensors"
    assert Version.objects.get(name="v1").state == "uploading"


@pytest.mark.parametrize("content", [b"x", b"", b"x" * 100_000], ids=["other bytes", "truncated", "oversized"])
def test_the_store_refuses_bytes_that_are_not_those_of_the_manifest(
    as_role: Caller, adapter: Adapter, store: Any, sent: list[Any], content: bytes
) -> None:
    client = as_role(Role.UPLOADER)
    started = start(client, adapter_files(), name="v1").json()
    assert put_file(client, started["uploads"][0], content) == 400
    assert client.post(f"{URL}/v1/finalize").status_code == 409


def test_finalize_twice_nudges_validation_once(
    as_role: Caller, adapter: Adapter, store: object, sent: list[tuple[str, dict[str, Any]]]
) -> None:
    client = as_role(Role.UPLOADER)
    files = adapter_files()
    started = start(client, files, name="v1").json()
    for target in started["uploads"]:
        assert put_file(client, target, files[target["path"]]) == 200
    assert client.post(f"{URL}/v1/finalize").status_code == 202
    assert client.post(f"{URL}/v1/finalize").status_code == 202
    assert [task for task, _arguments in sent] == ["workers.tasks.validate_version"]
    assert AuditRecord.objects.filter(action="adapter:version:finalize").count() == 1


def test_a_file_that_the_tenant_has_already_needs_no_second_put(push: Callable[..., Version], as_role: Caller) -> None:
    push(name="v1")
    again = start(as_role(Role.UPLOADER), adapter_files(), name="v2").json()
    assert all(target["stored"] for target in again["uploads"])


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../adapter_config.json", "bad_path"),
        ("/etc/passwd.json", "bad_path"),
        (".git/config.json", "bad_path"),
        ("a/../../b.json", "bad_path"),
        ("a\\b.json", "bad_path"),
        ("adapter_model.bin", "file_kind_refused"),
        ("weights.pkl", "file_kind_refused"),
        ("code.py", "file_kind_refused"),
        ("Adapter_config.json", "path_clash"),
        ("model.sig", "bad_path"),
    ],
)
def test_a_path_that_could_harm_is_refused_and_nothing_is_made(
    as_role: Caller, adapter: Adapter, store: object, sent: list[Any], path: str, code: str
) -> None:
    answer = start(as_role(Role.UPLOADER), {**adapter_files(), path: b"{}"})
    assert answer.status_code == 400
    assert answer.json()["code"] == code
    assert not Version.objects.exists()


def test_a_manifest_that_lies_about_a_known_files_size_is_refused(
    push: Callable[..., Version], as_role: Caller
) -> None:
    push(name="v1")
    manifest = manifest_of(adapter_files())
    manifest[0]["size"] += 1
    answer = as_role(Role.UPLOADER).post(URL, {"base_revision": "r1", "files": manifest}, format="json")
    assert answer.status_code == 400
    assert answer.json()["field"] == manifest[0]["path"]
    assert Version.objects.count() == 1


def test_a_manifest_with_a_wrong_size_does_not_block_the_right_one(
    as_role: Caller, adapter: Adapter, store: object, sent: list[Any]
) -> None:
    client, files = as_role(Role.UPLOADER), adapter_files()
    wrong = [{**file, "size": file["size"] + 1} for file in manifest_of(files)]
    assert client.post(URL, {"base_revision": "r1", "files": wrong, "name": "v1"}, format="json").status_code == 201
    started = start(client, files, name="v2").json()
    for target in started["uploads"]:
        assert put_file(client, target, files[target["path"]]) == 200
    assert client.post(f"{URL}/v2/finalize").status_code == 202


def test_an_unknown_base_revision_is_named(as_role: Caller, adapter: Adapter, store: object, sent: list[Any]) -> None:
    body = {"base_revision": "r9", "files": manifest_of(adapter_files())}
    answer = as_role(Role.UPLOADER).post(URL, body, format="json")
    assert answer.status_code == 404
    assert answer.json()["field"] == "base_revision"


def test_a_body_that_is_not_an_object_is_refused(as_role: Caller, adapter: Adapter, store: object) -> None:
    answer = as_role(Role.UPLOADER).post(URL, [1, 2], format="json")
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"


def test_a_nul_character_is_refused_rather_than_failing_in_the_database(
    as_role: Caller, adapter: Adapter, store: object
) -> None:
    body = {"base_revision": "r1", "files": manifest_of(adapter_files()), "lineage": {"a": "\x00"}}
    answer = as_role(Role.UPLOADER).post(URL, body, format="json")
    assert answer.status_code == 400


def multipart(files: dict[str, bytes], **parts: bytes) -> tuple[bytes, str]:
    """A multipart body as ``curl -F path=@file`` would send it."""
    boundary = "lorekeeper-test"
    lines = []
    for name, content in parts.items():
        lines.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + content)
    for path, content in files.items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{path}"; filename="f"\r\n'
        lines.append(f"{head}Content-Type: application/octet-stream\r\n\r\n".encode() + content)
    body = b"\r\n".join([*lines, f"--{boundary}--\r\n".encode()])
    return body, f"multipart/form-data; boundary={boundary}"


def send_push(client: Any, files: dict[str, bytes], manifest: bytes) -> Any:
    body, kind = multipart(files, manifest=manifest)
    return post_push(client, body, kind)


def post_push(client: Any, body: bytes, kind: str, **more: Any) -> Any:
    return client.generic("POST", PUSH, body, kind, **more)


def manifest_text(files: dict[str, bytes], **more: Any) -> bytes:
    return json.dumps({"base_revision": "r1", "files": manifest_of(files), **more}).encode()


def test_an_adapter_goes_in_one_request(
    as_role: Caller, adapter: Adapter, store: object, sent: list[tuple[str, dict[str, Any]]]
) -> None:
    files = adapter_files()
    answer = send_push(as_role(Role.UPLOADER), files, manifest_text(files, name="v1"))
    assert answer.status_code == 202, answer.json()
    assert answer.json()["state"] == "validating"
    assert [task for task, _arguments in sent] == ["workers.tasks.validate_version"]


def test_a_push_needs_its_manifest_first(as_role: Caller, adapter: Adapter, store: object, sent: list[Any]) -> None:
    files = adapter_files()
    body, kind = multipart(files)
    late = body.removesuffix(b"--lorekeeper-test--\r\n") + multipart({}, manifest=manifest_text(files))[0]
    answer = post_push(as_role(Role.UPLOADER), late, kind)
    assert (answer.status_code, answer.json()["field"]) == (400, "manifest")
    assert not Version.objects.exists()


def stored_files(folder: Path) -> list[bytes]:
    return sorted(path.read_bytes() for path in (folder / "store").rglob("*") if path.is_file())


@pytest.mark.parametrize("fault", ["missing", "extra", "truncated", "oversized", "wrong digest"])
def test_a_bad_part_is_named_and_its_bytes_are_not_kept_and_the_right_ones_go_on(
    as_role: Caller, adapter: Adapter, store: Any, sent: list[Any], fault: str, tmp_path: Path
) -> None:
    files, client = adapter_files(), as_role(Role.UPLOADER)
    manifest, weights = manifest_text(files, name="v1"), files["adapter_model.safetensors"]
    faults: dict[str, dict[str, bytes]] = {
        "missing": {path: content for path, content in files.items() if path != "adapter_model.safetensors"},
        "extra": {"extra.json": b"{}", **files},
        "truncated": {**files, "adapter_model.safetensors": weights[:-1]},
        "oversized": {**files, "adapter_model.safetensors": weights + b"x"},
        "wrong digest": {**files, "adapter_model.safetensors": weights[:-1] + bytes([weights[-1] ^ 1])},
    }
    answer = send_push(client, faults[fault], manifest)
    assert answer.status_code == (409 if fault == "missing" else 400)
    assert answer.json()["field"] == ("extra.json" if fault == "extra" else "adapter_model.safetensors")
    assert set(stored_files(tmp_path)) <= set(files.values()) - {weights}
    assert send_push(client, files, manifest).status_code == 202
    assert Version.objects.get().state == "validating"


def test_a_push_that_comes_again_is_quiet(as_role: Caller, adapter: Adapter, store: Any, sent: list[Any]) -> None:
    files, client = adapter_files(), as_role(Role.UPLOADER)
    answers = [send_push(client, files, manifest_text(files, name="v1")) for _time in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert len(sent) == 1


def test_a_file_that_comes_twice_in_a_push_is_refused(
    as_role: Caller, adapter: Adapter, store: Any, sent: list[Any]
) -> None:
    files = adapter_files()
    body, kind = multipart(files, manifest=manifest_text(files))
    body = body.removesuffix(b"--lorekeeper-test--\r\n") + multipart(files)[0]
    answer = post_push(as_role(Role.UPLOADER), body, kind)
    assert (answer.status_code, answer.json()["field"]) == (400, "adapter_config.json")


def test_a_file_without_a_file_name_is_refused(as_role: Caller, adapter: Adapter, store: Any, sent: list[Any]) -> None:
    body, kind = multipart({}, **{"manifest": manifest_text(adapter_files()), "adapter_config.json": b"{}"})
    answer = post_push(as_role(Role.UPLOADER), body, kind)
    assert (answer.status_code, answer.json()["field"]) == (400, "adapter_config.json")


def test_a_push_with_an_idempotency_key_is_told_apart_by_its_manifest(
    as_role: Caller, adapter: Adapter, store: Any, sent: list[Any]
) -> None:
    files, client = adapter_files(), as_role(Role.UPLOADER)
    body, kind = multipart(files, manifest=manifest_text(files))
    keyed = [post_push(client, body, kind, headers={"Idempotency-Key": "k"}) for _time in range(2)]
    assert [answer.status_code for answer in keyed] == [202, 202]
    assert keyed[0].json() == keyed[1].json()
    assert Version.objects.count() == 1
    other, kind = multipart(files, manifest=manifest_text(files, name="v2"))
    refused = post_push(client, other, kind, headers={"Idempotency-Key": "k"})
    assert refused.status_code in {409, 422}
