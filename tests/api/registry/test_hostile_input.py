"""No input is answered by a 500: whoever sends nonsense is told so."""

import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.test import APIClient

from registry.api.bodies import check_input
from registry.models import Adapter, Version
from registry.naming import MAX_FILES
from registry.states import Role
from tests.factories.adapters import BASE_NAME, adapter_files, manifest_of, tiny_description

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store", "sent")]
Caller = Callable[..., APIClient]

VERSIONS = "/api/v1/tenants/acme/adapters/support-tone/versions"
PUSH = "/api/v1/tenants/acme/adapters/support-tone/push"


@pytest.fixture
def everybody(as_role: Caller, adapter: Adapter) -> APIClient:
    return as_role(*Role)


NUL_PATHS = [
    ("get", "/api/v1/tenants/ac%00me/members"),
    ("get", "/api/v1/tenants/ac%00me/audit/export"),
    ("get", "/api/v1/tenants/acme/adapters/a%00b"),
    ("get", "/api/v1/tenants/acme/adapters/support-tone/versions/a%00b"),
    ("get", "/api/v1/tenants/acme/aliases/a%00b"),
    ("get", "/api/v1/base-models/a%00b/revisions/r1"),
    ("get", "/api/v1/nodes/a%00b"),
    ("get", "/a%00b"),
]


@pytest.mark.parametrize(("method", "path"), NUL_PATHS)
def test_an_address_with_a_nul_character_leads_nowhere(everybody: APIClient, method: str, path: str) -> None:
    answer = send(everybody, method.upper(), path)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_an_unknown_role_in_an_address_is_refused(admin: APIClient, adapter: Adapter) -> None:
    answer = admin.delete("/api/v1/tenants/acme/members/somebody@example.com/emperor")
    assert answer.status_code == 400
    assert answer.json()["field"] == "role"


def test_an_unknown_address_is_answered_as_a_problem(everybody: APIClient) -> None:
    answer = everybody.get("/api/v1/no-such-thing")
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "not an object": b"[1, 2]",
    "null": b"null",
    "a bare string": b'"x"',
    "broken UTF-8": b'{"name": "\xff\xfe"}',
    "a lone surrogate": b'{"name": "\\ud800"}',
    "a NUL": b'{"name": "\\u0000"}',
    "endless nesting": b"[" * 200_000,
    "endless nesting of objects": b'{"a":' * 200_000,
    "a huge number": b'{"base_revision": "r1", "files": [{"path": "a", "size": ' + b"9" * 5000 + b"}]}",
    "infinity": b'{"base_revision": "r1", "files": [], "lineage": {"x": Infinity}}',
    "types that are wrong": b'{"base_revision": {}, "files": {"a": 1}, "lineage": [], "name": true}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("url", [VERSIONS, f"{VERSIONS}/x/approve", "/api/v1/tenants/acme/adapters"])
def test_a_body_that_is_not_what_was_asked_for_is_refused(everybody: APIClient, url: str, body: bytes) -> None:
    answer = send(everybody, "POST", url, body, content_type="application/json")
    assert answer.status_code in (400, 404)
    assert answer.json()["detail"]


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" + "0" * 400])
def test_a_lineage_holds_only_numbers_that_can_be_kept(everybody: APIClient, number: str) -> None:
    manifest = json.dumps(manifest_of(adapter_files()))
    body = f'{{"base_revision": "r1", "files": {manifest}, "lineage": {{"loss": {number}}}}}'
    answer = send(everybody, "POST", VERSIONS, body, content_type="application/json")
    assert answer.status_code in (201, 400)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_manifest_in_a_push_holds_only_numbers_that_can_be_kept(everybody: APIClient, number: str) -> None:
    files = json.dumps(manifest_of(adapter_files()))
    manifest = f'{{"base_revision": "r1", "files": {files}, "lineage": {{"loss": {number}}}}}'
    assert everybody.post(PUSH, {"manifest": manifest}, format="multipart").status_code == 400


def test_a_lineage_is_short(everybody: APIClient) -> None:
    body = {"base_revision": "r1", "files": manifest_of(adapter_files()), "lineage": {"log": "x" * 100_000}}
    answer = everybody.post(VERSIONS, body, format="json")
    assert answer.status_code == 400
    assert answer.json()["field"] == "lineage"


@pytest.mark.parametrize("charset", ["zlib", "bz2", "base64", "hex", "rot13", "utf-16", "no-such-charset"])
def test_a_charset_is_no_way_to_smuggle_in_a_compressed_body(everybody: APIClient, charset: str) -> None:
    body = zlib.compress(json.dumps({"name": "bomb", "base_model": BASE_NAME}).encode())
    answer = send(
        everybody, "POST", "/api/v1/tenants/acme/adapters", body, content_type=f"application/json; charset={charset}"
    )
    assert answer.status_code == 400
    assert not Adapter.objects.filter(name="bomb").exists()


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"]
)
def test_a_body_in_another_form_is_refused(everybody: APIClient, content_type: str) -> None:
    answer = send(everybody, "POST", VERSIONS, b"name=x", content_type=content_type)
    assert answer.status_code == 415


def test_a_json_body_is_not_read_beyond_the_limit(everybody: APIClient, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    answer = everybody.post(VERSIONS, {"base_revision": "r1", "files": [], "lineage": {"x": "y" * 2000}}, format="json")
    assert answer.status_code == 413
    assert answer.json()["code"] == "payload_too_large"


def test_a_push_is_not_read_beyond_the_limit(everybody: APIClient, settings: Any) -> None:
    settings.MAX_VERSION_BYTES = 1000
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    answer = everybody.post(PUSH, {"manifest": "{}", "a.json": _part("a.json", b"x" * 4000)}, format="multipart")
    assert answer.status_code == 413


@pytest.mark.parametrize("content_type", ["multipart/form-data", "multipart/form-data; boundary=\xe9", "text/plain"])
def test_a_push_that_is_no_multipart_is_refused(everybody: APIClient, content_type: str) -> None:
    assert send(everybody, "POST", PUSH, b"--x\r\n", content_type=content_type).status_code in (400, 415)


@pytest.mark.parametrize("manifest", ["", "null", "[]", "[" * 100_000, "{", '{"files": 3}'])
def test_a_push_with_a_bad_manifest_is_refused(everybody: APIClient, manifest: str) -> None:
    assert everybody.post(PUSH, {"manifest": manifest}, format="multipart").status_code == 400


def test_a_push_without_a_manifest_is_refused(everybody: APIClient) -> None:
    answer = everybody.post(PUSH, {"a.json": _part("a.json", b"{}")}, format="multipart")
    assert answer.status_code == 400
    assert answer.json()["field"] == "manifest"


def test_a_push_whose_manifest_is_a_file_is_told_so(everybody: APIClient) -> None:
    answer = everybody.post(PUSH, {"manifest": _part("manifest.json", b"{}")}, format="multipart")
    assert answer.status_code == 400
    assert answer.json()["field"] == "manifest"


def test_a_push_may_hold_as_many_files_as_an_adapter(everybody: APIClient) -> None:
    files = {f"notes/{number}.md": f"{number}".encode() for number in range(MAX_FILES)}
    manifest = json.dumps({"base_revision": "r1", "files": manifest_of(files)})
    parts = {"manifest": manifest, **{path: _part("x", content) for path, content in files.items()}}
    assert everybody.post(PUSH, parts, format="multipart").status_code == 202


def test_a_push_with_too_many_parts_is_answered_as_a_problem(everybody: APIClient) -> None:
    parts = {"manifest": "{}", **{f"{number}.md": _part("x", b"x") for number in range(MAX_FILES + 10)}}
    answer = everybody.post(PUSH, parts, format="multipart")
    assert answer.status_code in (400, 413)
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_version_named_like_a_default_name_does_not_spoil_the_count(everybody: APIClient) -> None:
    day = everybody.post(VERSIONS, _body(seed=1), format="json").json()["name"].partition(".")[0]
    assert everybody.post(VERSIONS, {**_body(seed=2), "name": f"{day}.{'9' * 53}"}, format="json").status_code == 201
    answer = everybody.post(VERSIONS, _body(seed=3), format="json")
    assert answer.status_code == 201
    assert answer.json()["name"] == f"{day}.2"


def test_a_version_may_be_named_like_a_verb(everybody: APIClient) -> None:
    for name in ("push", "finalize", "versions"):
        assert everybody.post(VERSIONS, {**_body(seed=4), "name": name}, format="json").status_code == 201
        assert everybody.get(f"{VERSIONS}/{name}").json()["name"] == name
        assert Version.objects.get(name=name).state == "uploading"


@pytest.mark.parametrize("number", ["1e999", "12345678901234567890", "1.5", "true", '"4"', "[]"])
def test_a_base_description_with_other_numbers_is_refused(admin: APIClient, number: str) -> None:
    description = json.dumps({**tiny_description().to_json(), "vocab_size": 0}).replace(
        '"vocab_size": 0', f'"vocab_size": {number}'
    )
    body = f'{{"name": "{BASE_NAME}", "revision": "r9", "max_rank": 8, "description": {description}}}'
    answer = send(admin, "POST", "/api/v1/base-models", body, content_type="application/json")
    assert answer.status_code == 400


@pytest.mark.parametrize("length", ["abc", "-1", "99999999999999999999"])
def test_a_stored_object_with_a_strange_length_is_refused(length: str, everybody: APIClient) -> None:
    target = everybody.post(VERSIONS, _body(seed=5), format="json").json()["uploads"][0]
    path = target["url"].removeprefix("http://testserver")
    answer = send(everybody, "PUT", path, b"x", content_type="application/octet-stream", CONTENT_LENGTH=length)
    assert answer.status_code == 400


@pytest.mark.parametrize("ticket", ["x", "x.y", "%C3%A9.%C3%A9", "." * 5000, "a%00b"])
def test_a_made_up_store_address_is_refused(ticket: str) -> None:
    assert APIClient(raise_request_exception=False).get(f"/store/{ticket}").status_code in (403, 404)


def _body(*, seed: int) -> dict[str, Any]:
    return {"base_revision": "r1", "files": manifest_of(adapter_files(seed=seed))}


def _part(name: str, content: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def send(client: Any, method: str, address: str, body: bytes | str = b"", **facts: str) -> Any:
    """A request whose body is exactly these bytes."""
    return client.generic(method, address, body, **facts)


class _Part(serializers.Serializer[Any]):
    text = serializers.CharField(required=False, max_length=5)


class _Whole(_Part):
    texts = serializers.ListField(child=serializers.CharField(max_length=5), required=False)
    part = _Part(required=False)
    parts = _Part(many=True, required=False)


@pytest.mark.parametrize(
    ("name", "shaped"),
    [
        ("text", lambda text: text),
        ("texts", lambda text: ["ok", text]),
        ("part", lambda text: {"text": text}),
        ("parts", lambda text: [{"text": text}]),
    ],
)
def test_a_text_is_as_long_as_declared_with_the_blanks_at_its_ends(name: str, shaped: Callable[[str], Any]) -> None:
    assert check_input({name: shaped(" four")}, _Whole) == {name: shaped("four")}
    for text in (" 12345", "12345\x1f", "123456"):
        with pytest.raises(ValidationError) as refused:
            check_input({name: shaped(text)}, _Whole)
        assert set(refused.value.get_full_details()) == {name}
