"""Pushing over the hub-compatible API: drafts, branches, and cutting versions."""

import io
from collections.abc import Callable
from typing import Any

import pytest

from registry.models import Adapter, AuditRecord, HubCommit, HubDraft, HubFile, Tenant, Version
from registry.states import Role
from tests.api.registry.conftest import Caller
from tests.api.registry.hub.conftest import HubClient
from tests.factories.adapters import BASE_NAME, adapter_files
from tests.factories.hub import added, commit_body
from workers.jobs.validation import validate_version

Release = Callable[..., Version]


@pytest.mark.django_db(transaction=True)
def test_a_push_and_a_tag_make_a_version_that_is_validated(
    hub: HubClient, adapter: Adapter, sent: list[tuple[str, dict[str, Any]]]
) -> None:
    commit = hub.push(adapter_files())
    assert hub.tag("v1").status_code == 200
    version = Version.objects.get(adapter=adapter, name="v1")
    assert version.state == "validating"
    assert sent == [("workers.tasks.validate_version", {"version_id": str(version.pk)})]
    validate_version(version_id=version.pk)
    version.refresh_from_db()
    assert version.state == "candidate"
    assert version.base_revision.label == "r1"
    assert hub.info(commit).json()["sha"] == commit


def test_a_new_repository_becomes_an_adapter_of_the_base_model_in_its_config(
    hub: HubClient, tenant: Tenant, base_revision: object
) -> None:
    assert hub.create().json()["url"].endswith("/acme/support-tone")
    assert not Adapter.objects.exists()
    hub.push(adapter_files(base_model_name_or_path="some-org/Tiny_Base"))
    assert hub.tag("v1").status_code == 200
    assert Adapter.objects.get(tenant=tenant, name="support-tone").base_model.name == BASE_NAME


def test_a_config_that_names_no_registered_base_is_refused_and_says_which_there_are(
    hub: HubClient, tenant: Tenant, base_revision: object
) -> None:
    hub.create()
    hub.push(adapter_files(base_model_name_or_path="elsewhere/other-model"))
    answer = hub.tag("v1")
    assert answer.status_code == 400
    assert "elsewhere/other-model" in answer.headers["X-Error-Message"]
    assert BASE_NAME in answer.json()["error"]
    assert not Adapter.objects.exists()
    assert not Version.objects.exists()


def test_a_tag_without_a_config_says_what_is_missing(hub: HubClient, adapter: Adapter) -> None:
    hub.push({"README.md": b"# Hello"})
    answer = hub.tag("v1")
    assert answer.status_code == 400
    assert "adapter_config.json" in answer.json()["error"]


def test_a_version_may_come_in_several_pushes(hub: HubClient, adapter: Adapter) -> None:
    files = adapter_files()
    hub.push({"adapter_config.json": files["adapter_config.json"], "notes/old.md": b"old"})
    hub.push({"adapter_model.safetensors": files["adapter_model.safetensors"]})
    gone = hub.commit({"key": "deletedFolder", "value": {"path": "notes/"}}, added("README.md", b""))
    assert gone.status_code == 200, gone.json()
    assert hub.tag("v1").status_code == 200
    paths = Version.objects.get(name="v1").files.values_list("path", flat=True)
    assert sorted(paths) == ["README.md", "adapter_config.json", "adapter_model.safetensors"]


def test_a_push_that_changes_nothing_gives_the_same_commit(hub: HubClient, adapter: Adapter) -> None:
    first = hub.push(adapter_files())
    assert hub.push(adapter_files()) == first
    assert HubCommit.objects.count() == 1
    assert AuditRecord.objects.filter(action="tenant:draft:push").count() == 1


def test_a_copied_file_needs_no_bytes(hub: HubClient, adapter: Adapter) -> None:
    commit = hub.push({"README.md": b"hello"})
    entry = hub.api("GET", f"/tree/{commit}").json()[0]
    copy = {"path": "docs/README.md", "algo": "sha256", "oid": entry["lfs"]["oid"]}
    answer = hub.commit({"key": "lfsFile", "value": copy})
    assert answer.status_code == 200, answer.json()
    assert hub.resolve("docs/README.md", answer.json()["commitOid"]).getvalue() == b"hello"


def test_the_bytes_of_somebody_elses_draft_cannot_be_copied(hub: HubClient, adapter: Adapter, as_role: Caller) -> None:
    commit = hub.push({"README.md": b"secret"})
    digest = hub.api("GET", f"/tree/{commit}").json()[0]["lfs"]["oid"]
    other = HubClient(as_role(Role.UPLOADER, new=True))
    answer = other.commit({"key": "lfsFile", "value": {"path": "a.md", "algo": "sha256", "oid": digest}})
    assert answer.status_code == 404
    assert answer.headers["X-Error-Code"] == "EntryNotFound"


def test_a_commit_on_another_parent_than_the_newest_is_refused(hub: HubClient, adapter: Adapter) -> None:
    old = hub.push({"README.md": b"1"})
    hub.push({"README.md": b"2"}, parent=old)
    answer = hub.commit(added("README.md", b"3"), parent=old)
    assert answer.status_code == 412
    assert "A commit has happened since" in answer.json()["error"]
    assert hub.resolve("README.md").getvalue() == b"2"


def test_a_tag_is_never_used_twice(hub: HubClient, adapter: Adapter) -> None:
    hub.push(adapter_files())
    assert hub.tag("v1").status_code == 200
    hub.push(adapter_files(seed=2))
    answer = hub.tag("v1")
    assert answer.status_code == 409
    assert answer.headers["X-Error-Code"] == "VersionExists"


def test_a_tag_that_broke_off_after_the_upload_began_is_finished_by_its_repetition(
    hub: HubClient, adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    from registry.services.hub import versions

    hub.push(adapter_files())
    with monkeypatch.context() as patch:
        patch.setattr(versions, "finalize_upload", lambda **facts: 1 / 0)
        assert hub.tag("v1").status_code == 500
    assert Version.objects.get(name="v1").state == "uploading"
    assert hub.tag("v1").status_code == 200
    assert Version.objects.get(name="v1").state == "validating"


def test_a_version_is_neither_pushed_to_nor_deleted_nor_cut_again(hub: HubClient, release: Release) -> None:
    release("v1", default=True)
    assert hub.api("DELETE", "/tag/v1").status_code == 409
    assert hub.commit(added("README.md", b"x"), branch="v1").status_code == 409
    assert hub.tag("v2", "v1").status_code == 409
    pinned = HubClient(hub.client, "acme/support-tone.v1")
    assert pinned.commit(added("README.md", b"x")).status_code == 409
    assert Version.objects.count() == 1


def test_branches_are_drafts_of_their_own(hub: HubClient, adapter: Adapter) -> None:
    main = hub.push({"README.md": b"main"})
    assert hub.api("POST", "/branch/next", {"startingPoint": "main"}).status_code == 200
    assert hub.api("POST", "/branch/next").status_code == 409
    hub.push({"README.md": b"next"}, branch="next")
    assert hub.resolve("README.md", "next").getvalue() == b"next"
    assert hub.info("main").json()["sha"] == main
    refs = hub.api("GET", "/refs").json()
    assert [ref["name"] for ref in refs["branches"]] == ["main", "next"]
    assert hub.api("DELETE", "/branch/next").status_code == 200
    assert hub.api("DELETE", "/branch/main").status_code == 409
    assert hub.info("next").headers["X-Error-Code"] == "RevisionNotFound"


def test_creating_a_repository_that_is_there_gives_its_address_with_the_refusal(
    hub: HubClient, adapter: Adapter
) -> None:
    answer = hub.create()
    assert answer.status_code == 409
    assert answer.json()["url"].endswith("/acme/support-tone")


def test_a_repository_named_without_a_tenant_is_the_callers_only_one(hub: HubClient, tenant: Tenant) -> None:
    answer = hub.client.post("/api/repos/create", {"name": "other", "organization": None, "private": True}, "json")
    assert answer.json()["name"] == "acme/other"


def test_a_repository_without_versions_can_be_thrown_away_and_an_adapter_cannot(
    hub: HubClient, tenant: Tenant, base_revision: object
) -> None:
    hub.create()
    hub.push(adapter_files())
    body = {"name": "support-tone", "organization": "acme"}
    assert hub.client.delete("/api/repos/delete", body, "json").status_code == 200
    assert not HubDraft.objects.exists()
    assert not HubFile.objects.exists()
    hub.create()
    hub.push(adapter_files())
    hub.tag("v1")
    assert hub.client.delete("/api/repos/delete", body, "json").status_code == 409


def test_viewers_and_outsiders_do_not_push(reader: HubClient, adapter: Adapter, as_role: Caller) -> None:
    assert reader.create().status_code == 403
    for answer in (reader.commit(added("README.md", b"x")), reader.api("POST", "/preupload/main"), reader.tag("v1")):
        assert answer.status_code == 403
        assert "uploader" in answer.headers["X-Error-Message"]
    assert not HubCommit.objects.exists()


@pytest.mark.parametrize(
    ("path", "words"),
    [("../x.json", ".."), ("adapter_model.bin", "pickled"), ("run.py", "no code"), ("model.sig", "signature")],
)
def test_a_path_that_could_harm_is_refused_before_and_within_the_push(
    hub: HubClient, adapter: Adapter, path: str, words: str
) -> None:
    ahead = hub.api("POST", "/preupload/main", {"files": [{"path": path, "size": 1, "sample": "eA=="}]})
    within = hub.commit(added("README.md", b"kept?"), added(path, b"x"))
    for answer in (ahead, within):
        assert answer.status_code == 400
        assert words in answer.json()["error"]
    assert not HubCommit.objects.exists()


def test_clients_send_every_file_within_the_commit_and_leave_out_what_trainers_write_beside(
    hub: HubClient, adapter: Adapter
) -> None:
    names = ["adapter_model.safetensors", "training_args.bin", "runs/events.out.tfevents.1"]
    files = [{"path": name, "size": 10, "sample": "eA=="} for name in names]
    answer = hub.api("POST", "/preupload/main", {"files": files}).json()["files"]
    assert {file["uploadMode"] for file in answer} == {"regular"}
    assert [file["shouldIgnore"] for file in answer] == [False, True, True]
    assert hub.commit(added("training_args.bin", b"x")).status_code == 400


def test_a_branch_that_is_not_there_is_told_before_the_bytes_are_sent(hub: HubClient, adapter: Adapter) -> None:
    for answer in (hub.api("POST", "/preupload/next", {"files": []}), hub.commit(added("a.md", b"x"), branch="next")):
        assert answer.status_code == 404
        assert answer.headers["X-Error-Code"] == "RevisionNotFound"


def test_there_are_no_pull_requests(hub: HubClient, adapter: Adapter) -> None:
    answer = hub.api("POST", "/preupload/main", {"files": []}, create_pr="1")
    assert answer.status_code == 400
    assert "create a tag" in answer.json()["error"]


@pytest.mark.parametrize("fault", ["cut off", "no header", "not json", "not base64", "twice", "clash", "no length"])
def test_a_push_that_is_not_whole_leaves_the_branch_and_the_store_as_they_were(
    hub: HubClient, adapter: Adapter, fault: str, store: Any, tmp_path: Any
) -> None:
    before = hub.push({"README.md": b"before"})
    stored = sorted(path for path in (tmp_path / "store").rglob("*") if path.is_file())
    good = commit_body(added("weights.safetensors", b"w" * 100_000), added("a.json", b"{}"))
    bodies = {
        "no header": good.partition(b"\n")[2],
        "not json": good + b"}\n",
        "not base64": good.replace(b'"content": "', b'"content": "*'),
        "twice": good + commit_body(added("a.json", b"[]")).partition(b"\n")[2],
        "clash": good + commit_body(added("A.json", b"[]")).partition(b"\n")[2],
    }
    if fault == "cut off":
        address = f"/api/models/{hub.repo}/commit/main"
        extra = {"CONTENT_LENGTH": str(len(good)), "wsgi.input": io.BytesIO(good[:-30])}
        answer = hub.client.generic("POST", address, b"x", content_type="application/x-ndjson", **extra)
    elif fault == "no length":
        address = f"/api/models/{hub.repo}/commit/main"
        answer = hub.client.generic("POST", address, good, content_type="application/x-ndjson", CONTENT_LENGTH="")
    else:
        answer = hub.send(bodies[fault])
    assert answer.status_code == 400, answer.content
    assert hub.info(before).json()["sha"] == before
    assert HubCommit.objects.count() == 1
    assert sorted(path for path in (tmp_path / "store").rglob("*") if path.is_file()) == stored


def test_a_push_larger_than_a_version_may_be_is_refused(hub: HubClient, adapter: Adapter, settings: Any) -> None:
    settings.MAX_VERSION_BYTES = 100_000
    answer = hub.commit(added("weights.safetensors", b"w" * 100_001))
    assert answer.status_code == 413
    preupload = hub.api("POST", "/preupload/main", {"files": [{"path": "w.safetensors", "size": 100_001}]})
    assert preupload.status_code == 413
    assert not HubCommit.objects.exists()
