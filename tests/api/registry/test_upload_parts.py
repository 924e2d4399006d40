"""A large file in parts, through the API and the folder store; the parts of these tests are small."""

import hashlib
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from rest_framework.test import APIClient

from registry.models import Adapter, Artifact, UploadInParts, Version
from registry.states import Role
from tests.api.registry.conftest import put_file
from tests.factories.adapters import adapter_files, manifest_of

VERSIONS = "/api/v1/tenants/acme/adapters/support-tone/versions"
URL = f"{VERSIONS}/v1"
PART = 4096
WEIGHTS = random.Random(1).randbytes(10_240)
PATH = "adapter_model.safetensors"
PARTS = [WEIGHTS[start : start + PART] for start in range(0, len(WEIGHTS), PART)]
FILES = {**adapter_files(), PATH: WEIGHTS}
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
Caller = Callable[..., APIClient]


@pytest.fixture
def uploader(as_role: Caller, adapter: Adapter, store: object, settings: Any) -> APIClient:
    """Somebody whose version ``v1`` has everything but its weights."""
    settings.UPLOAD_PARTS_FROM, settings.UPLOAD_PART_BYTES = PART, PART
    client = as_role(Role.UPLOADER)
    for target in start(client)["uploads"]:
        if target["part_bytes"] is None:
            put_file(client, target, FILES[target["path"]])
    return client


def start(client: APIClient, name: str = "v1") -> Any:
    body = {"base_revision": "r1", "files": manifest_of(FILES), "name": name}
    return client.post(VERSIONS, body, format="json").json()


def begin(client: APIClient, numbers: Iterable[int] = (), *, url: str = URL, parts: list[bytes] = PARTS) -> Any:
    wanted = [{"number": number, "sha256": hashlib.sha256(parts[number - 1]).hexdigest()} for number in numbers]
    return client.post(f"{url}/parts", {"path": PATH, "parts": wanted}, format="json")


def send(client: APIClient, numbers: Iterable[int], *, url: str = URL, parts: list[bytes] = PARTS) -> list[int]:
    addresses = begin(client, numbers, url=url, parts=parts).json()["addresses"]
    return [put_file(client, address, parts[address["number"] - 1]) for address in addresses]


def complete(client: APIClient, *, url: str = URL) -> Any:
    return client.post(f"{url}/parts/complete", {"path": PATH}, format="json")


def test_only_a_large_file_is_offered_in_parts(uploader: APIClient) -> None:
    offered = {target["path"]: target["part_bytes"] for target in start(uploader)["uploads"]}
    assert offered == {"adapter_config.json": None, PATH: PART}


def test_parts_are_sent_in_any_order_and_make_the_file(uploader: APIClient) -> None:
    assert send(uploader, (3, 1, 2)) == [200, 200, 200]
    done = complete(uploader)
    assert (done.status_code, done.json()["stored"]) == (200, True)
    assert uploader.post(f"{URL}/finalize").status_code == 202
    assert not UploadInParts.objects.exists()


def test_an_upload_that_was_cut_off_asks_what_is_there_and_sends_the_rest(uploader: APIClient) -> None:
    send(uploader, (2,))
    found = uploader.get(f"{URL}/parts", {"path": PATH}).json()
    assert found["arrived"] == [{"number": 2, "size": PART, "sha256": hashlib.sha256(PARTS[1]).hexdigest()}]
    assert begin(uploader).json()["arrived"] == found["arrived"]
    send(uploader, (1, 3))
    assert complete(uploader).status_code == 200


def test_what_is_missing_is_named_and_can_be_sent(uploader: APIClient) -> None:
    assert complete(uploader).json()["code"] == "upload_incomplete"
    send(uploader, (1, 2))
    answer = complete(uploader)
    assert (answer.status_code, answer.json()["field"]) == (409, PATH)
    assert "Part 3" in answer.json()["detail"]
    assert uploader.post(f"{URL}/finalize").status_code == 409
    send(uploader, (3,))
    assert complete(uploader).status_code == 200


def test_a_part_of_other_bytes_than_it_was_announced_with_is_refused(uploader: APIClient) -> None:
    address = begin(uploader, (1,)).json()["addresses"][0]
    assert put_file(uploader, address, PARTS[1]) == 400
    assert put_file(uploader, address, PARTS[0][:-1]) == 400
    assert begin(uploader).json()["arrived"] == []


def test_parts_that_make_other_bytes_are_refused_and_the_right_ones_can_be_sent(uploader: APIClient) -> None:
    wrong = [PARTS[0], PARTS[0], PARTS[2]]
    send(uploader, (1, 2, 3), parts=wrong)
    answer = complete(uploader)
    assert (answer.status_code, answer.json()["code"]) == (400, "store_digest_mismatch")
    assert begin(uploader).json()["arrived"] == []
    send(uploader, (1, 2, 3))
    assert complete(uploader).status_code == 200


def test_completing_again_is_quiet_even_when_the_version_went_on(uploader: APIClient) -> None:
    send(uploader, (1, 2, 3))
    assert [complete(uploader).status_code for _time in range(2)] == [200, 200]
    uploader.post(f"{URL}/finalize")
    assert complete(uploader).status_code == 200
    assert begin(uploader, (1,)).json()["addresses"] == []


def test_a_file_that_the_tenant_has_needs_no_parts(uploader: APIClient) -> None:
    send(uploader, (1, 2, 3))
    complete(uploader)
    uploader.post(f"{URL}/finalize")
    assert {target["path"]: target["stored"] for target in start(uploader, "v2")["uploads"]}[PATH]
    found = begin(uploader, (1,), url=f"{VERSIONS}/v2").json()
    assert (found["stored"], found["addresses"]) == (True, [])
    assert Artifact.objects.filter(sha256=hashlib.sha256(WEIGHTS).hexdigest()).count() == 1


def test_two_uploaders_of_the_same_bytes_do_not_touch_each_others_parts(uploader: APIClient, as_role: Caller) -> None:
    other = as_role(Role.UPLOADER, new=True)
    start(other, "v2")
    send(other, (1, 2, 3), url=f"{VERSIONS}/v2", parts=[PARTS[0], PARTS[0], PARTS[2]])
    send(uploader, (1, 2, 3))
    assert complete(other, url=f"{VERSIONS}/v2").status_code == 400
    assert complete(uploader).status_code == 200
    assert complete(other, url=f"{VERSIONS}/v2").status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"path": "adapter_config.json"}, 400, "path"),
        ({"path": "nothing.json"}, 404, "path"),
        ({"path": PATH, "parts": [{"number": 4, "sha256": "0" * 64}]}, 400, "parts"),
        ({"path": PATH, "parts": [{"number": 1, "sha256": "x"}]}, 400, "parts"),
        ({"path": PATH, "parts": [{"number": 0, "sha256": "0" * 64}]}, 400, "parts.0.number"),
    ],
)
def test_what_can_not_go_in_parts_is_refused_by_name(
    uploader: APIClient, body: dict[str, Any], status: int, field: str
) -> None:
    answer = uploader.post(f"{URL}/parts", body, format="json")
    assert (answer.status_code, answer.json()["field"]) == (status, field)


def test_nobody_else_may_ask_for_parts(uploader: APIClient, as_role: Caller) -> None:
    viewer = as_role(Role.VIEWER)
    assert begin(viewer, (1,)).status_code == 403
    assert complete(viewer).status_code == 403
    assert viewer.get(f"{URL}/parts", {"path": PATH}).status_code == 403


def test_an_upload_that_is_over_takes_no_parts(uploader: APIClient) -> None:
    Version.objects.filter(name="v1").update(state="rejected")
    answer = begin(uploader, (1,))
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
    assert complete(uploader).status_code == 409
