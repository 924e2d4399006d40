"""Reading over the hub-compatible API: who sees which revision, and the bytes with what clients keep of them."""

import hashlib
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from registry.actors import system_actor
from registry.hub.names import EMPTY_COMMIT
from registry.models import Adapter, Artifact, Version
from registry.naming import object_key
from registry.ports import PORTS
from registry.services.withdrawals import revoke_version, yank_version
from registry.states import Role
from registry.stores.ports import ArtifactStore
from releases.services.aliases import set_alias
from tests.api.registry.conftest import Caller
from tests.api.registry.hub.conftest import HubClient
from tests.factories.adapters import adapter_files
from tests.factories.registry import make_person

Release = Callable[..., Version]
SYSTEM = system_actor("test")


def test_main_is_the_default_alias_and_tags_are_the_versions(
    release: Release, reader: HubClient, hub: HubClient
) -> None:
    first = release("v1", seed=1, default=True)
    release("v2", seed=2)
    assert reader.resolve("adapter_model.safetensors").getvalue() == adapter_files(seed=1)["adapter_model.safetensors"]
    newest = reader.resolve("adapter_model.safetensors", "v2").getvalue()
    assert newest == adapter_files(seed=2)["adapter_model.safetensors"]
    refs = reader.api("GET", "/refs").json()
    assert [ref["name"] for ref in refs["tags"]] == ["v2", "v1"]
    branches = {ref["name"]: ref["targetCommit"] for ref in refs["branches"]}
    commit = reader.info("v1").json()["sha"]
    assert branches == {"main": commit, "support-tone.default": commit}
    assert commit.startswith(first.pk.hex)
    # The uploader reads what everybody reads, though there is a newer draft of theirs.
    assert hub.info().json()["sha"] == commit


def test_from_the_first_approval_on_main_is_what_the_default_stands_for_whatever_else_there_is(
    release: Release, reader: HubClient
) -> None:
    release("v1", seed=1)
    assert reader.info().json()["sha"] == reader.info("v1").json()["sha"]
    second = release("v2", seed=2)
    line = second.adapter
    set_alias(actor=SYSTEM, tenant=line.tenant, name="support", adapter=line, version=second)
    assert reader.info("support").json()["sha"] == reader.info("v2").json()["sha"]
    assert reader.info().json()["sha"] == reader.info("v1").json()["sha"]


def test_a_version_has_a_repository_name_of_its_own(release: Release, reader: HubClient) -> None:
    release("2026-07-04.3", seed=3)
    pinned = HubClient(reader.client, "acme/support-tone.2026-07-04.3")
    info = pinned.info().json()
    assert info["id"] == "acme/support-tone.2026-07-04.3"
    assert info["sha"] == reader.info("2026-07-04.3").json()["sha"]
    assert pinned.info(info["sha"]).status_code == 200
    assert pinned.resolve("adapter_config.json", "2026-07-04.3").status_code == 200
    assert pinned.info("v9").headers["X-Error-Code"] == "RevisionNotFound"
    assert [ref["name"] for ref in pinned.api("GET", "/refs").json()["tags"]] == ["2026-07-04.3"]


def test_only_the_uploader_sees_a_draft_and_what_is_not_approved_yet(
    hub: HubClient, adapter: Adapter, reader: HubClient, as_role: Caller
) -> None:
    commit = hub.push(adapter_files())
    hub.tag("v1")
    for revision in ("main", "v1", commit):
        assert hub.info(revision).status_code == 200
    version = hub.info("v1").json()["sha"]
    for client in (reader, HubClient(as_role(Role.UPLOADER, new=True)), HubClient(as_role(Role.REVIEWER))):
        for revision in ("v1", commit, version):
            answer = client.info(revision)
            assert (answer.status_code, answer.headers["X-Error-Code"]) == (404, "RevisionNotFound")
        assert client.api("GET", "/refs").json()["tags"] == []


def test_a_draft_repository_is_nobody_elses_to_know(hub: HubClient, tenant: object, reader: HubClient) -> None:
    hub.create()
    assert hub.info().json()["sha"] == EMPTY_COMMIT
    assert hub.api("GET", "/auth-check").status_code == 200
    assert reader.info().headers["X-Error-Code"] == "RepoNotFound"
    assert reader.api("GET", "/auth-check").status_code == 404


@pytest.mark.parametrize("name", ["main", "v1", "its commit", "tenant/adapter.version"])
def test_a_revoked_version_is_gone_for_every_reader(
    release: Release, reader: HubClient, hub: HubClient, name: str
) -> None:
    version = release("v1", default=True)
    revision = reader.info().json()["sha"] if name == "its commit" else name
    clients = [reader, hub]
    if name == "tenant/adapter.version":
        clients, revision = [HubClient(client.client, f"{hub.repo}.v1") for client in clients], "main"
    assert clients[0].resolve("adapter_config.json", revision, method="HEAD").status_code in {200, 307}
    revoke_version(actor=SYSTEM, version=version, reason="poisoned")
    for client in clients:
        for answer in (client.resolve("adapter_config.json", revision, method="HEAD"), client.info(revision)):
            assert (answer.status_code, answer.headers["X-Error-Code"]) == (404, "RevisionNotFound")


def test_a_yanked_version_is_still_served_where_it_is_named(release: Release, reader: HubClient) -> None:
    version = release("v1")
    yank_version(actor=SYSTEM, version=version, reason="old")
    assert reader.info("v1").status_code == 200


def test_a_file_comes_with_all_that_a_client_keeps_of_it(release: Release, reader: HubClient) -> None:
    release("v1")
    content = adapter_files()["adapter_model.safetensors"]
    commit = reader.info("v1").json()["sha"]
    for method, body in (("HEAD", b""), ("GET", content)):
        answer = reader.resolve("adapter_model.safetensors", commit, method=method)
        assert answer.status_code == 200
        assert b"".join(answer) == body
        assert answer.headers["ETag"] == answer.headers["X-Linked-ETag"] == f'"{hashlib.sha256(content).hexdigest()}"'
        assert answer.headers["Content-Length"] == answer.headers["X-Linked-Size"] == str(len(content))
        assert answer.headers["X-Repo-Commit"] == commit


@pytest.mark.parametrize(
    ("header", "first", "last"), [("bytes=10-19", 10, 19), ("bytes=-5", -5, None), ("bytes=40-", 40, None)]
)
def test_a_part_of_a_file_can_be_read(
    release: Release, reader: HubClient, header: str, first: int, last: int | None
) -> None:
    release("v1")
    content = adapter_files()["adapter_config.json"]
    answer = reader.resolve("adapter_config.json", "v1", HTTP_RANGE=header)
    part = content[first : None if last is None else last + 1]
    assert (answer.status_code, answer.getvalue()) == (206, part)
    begin = content.index(part)
    assert answer.headers["Content-Range"] == f"bytes {begin}-{begin + len(part) - 1}/{len(content)}"
    etag = answer.headers["ETag"]
    same = reader.resolve("adapter_config.json", "v1", HTTP_RANGE=header, HTTP_IF_RANGE=etag)
    assert (same.status_code, same.getvalue()) == (206, part)
    other = reader.resolve("adapter_config.json", "v1", HTTP_RANGE=header, HTTP_IF_RANGE='"another file"')
    assert (other.status_code, other.getvalue()) == (200, content)
    beyond = reader.resolve("adapter_config.json", "v1", HTTP_RANGE="bytes=99999-")
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, f"bytes */{len(content)}")


def test_a_file_that_is_not_there_names_the_commit_it_is_not_in(release: Release, reader: HubClient) -> None:
    release("v1")
    answer = reader.resolve("README.md", "v1", method="HEAD")
    assert (answer.status_code, answer.headers["X-Error-Code"]) == (404, "EntryNotFound")
    assert answer.headers["X-Repo-Commit"] == reader.info("v1").json()["sha"]


def test_before_the_first_push_a_repository_is_there_and_empty(hub: HubClient, adapter: Adapter) -> None:
    assert hub.resolve("README.md").headers["X-Error-Code"] == "EntryNotFound"
    assert hub.api("GET", f"/tree/{EMPTY_COMMIT}").json() == []
    assert hub.api("GET", "/commits/main").json() == []


def test_a_tree_lists_folders_and_files(hub: HubClient, adapter: Adapter) -> None:
    hub.push({"README.md": b"top", "notes/a.md": b"a", "notes/deep/b.md": b"b"})
    top = hub.api("GET", "/tree/main", expand="True").json()
    assert [(entry["type"], entry["path"]) for entry in top] == [("directory", "notes"), ("file", "README.md")]
    assert top[1]["lastCommit"]["title"] == "Upload"
    assert top[1]["size"] == 3
    assert top[1]["lfs"]["oid"] == hashlib.sha256(b"top").hexdigest()
    below = [entry["path"] for entry in hub.api("GET", "/tree/main/notes").json()]
    assert below == ["notes/deep", "notes/a.md"]
    everything = [entry["path"] for entry in hub.api("GET", "/tree/main", recursive="true").json()]
    assert everything == ["notes", "notes/deep", "README.md", "notes/a.md", "notes/deep/b.md"]
    assert hub.api("GET", "/tree/main/nowhere").headers["X-Error-Code"] == "EntryNotFound"


@pytest.mark.parametrize("kind", ["form", "json"])
def test_paths_are_asked_for_by_name(hub: HubClient, adapter: Adapter, kind: str) -> None:
    hub.push({"README.md": b"top", "notes/a.md": b"a"})
    address = f"/api/models/{hub.repo}/paths-info/main"
    if kind == "form":
        body = "paths=README.md&paths=notes&paths=gone.md&expand=False"
        answer = hub.client.generic("POST", address, body, content_type="application/x-www-form-urlencoded")
    else:
        answer = hub.client.post(address, {"paths": ["README.md", "notes", "gone.md"]}, "json")
    assert [entry["path"] for entry in answer.json()] == ["README.md", "notes"]


def test_the_history_of_a_draft_is_its_pushes(hub: HubClient, adapter: Adapter) -> None:
    commits = [hub.push({"README.md": text}) for text in (b"1", b"2")]
    assert [commit["id"] for commit in hub.api("GET", "/commits/main").json()] == commits[::-1]
    assert hub.resolve("README.md", commits[0]).getvalue() == b"1"


def test_who_am_i_gives_the_tenant_as_the_namespace(hub: HubClient, reader: HubClient, tenant: object) -> None:
    shown = hub.client.get("/api/whoami-v2").json()
    assert (shown["name"], [org["name"] for org in shown["orgs"]]) == ("acme", ["acme"])
    assert shown["auth"]["accessToken"]["role"] == "write"


def test_the_head_of_a_readme_is_never_wrong(hub: HubClient, tenant: object) -> None:
    body = {"content": "---\nlibrary_name: peft\n---\n# Hello", "repoType": "model"}
    assert hub.client.post("/api/validate-yaml", body, "json").json() == {"errors": [], "warnings": []}


def test_a_wrong_token_is_told_in_the_words_that_clients_look_for(hub: HubClient, adapter: Adapter) -> None:
    from tests.api.registry.conftest import client_with

    answer = HubClient(client_with("lk_wrong")).info()
    assert answer.status_code == 401
    assert answer.headers["X-Error-Message"] == "Invalid credentials in Authorization header"


def test_outsiders_learn_nothing(release: Release, hub: HubClient) -> None:
    from registry.services.tokens import create_platform_token
    from registry.states import Scope, TokenKind
    from tests.api.registry.conftest import client_with

    release("v1", default=True)
    token = create_platform_token(
        actor=SYSTEM, name="t", kind=TokenKind.PERSON, scopes=[Scope.READ, Scope.UPLOAD], person=make_person()
    )
    outsider = client_with(token.text)
    there, nowhere = HubClient(outsider).info(), HubClient(outsider, "nobody/nothing").info()
    assert there.status_code == nowhere.status_code == 404
    assert there.json() == nowhere.json()
    assert there.headers["X-Error-Code"] == nowhere.headers["X-Error-Code"] == "RepoNotFound"


def test_bytes_in_an_object_store_are_fetched_from_there(
    release: Release, reader: HubClient, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    release("v1")
    settings.STORE = {**settings.STORE, "kind": "s3"}
    for method in ("HEAD", "GET"):
        answer = reader.resolve("adapter_config.json", "v1", method=method)
        assert answer.status_code == 302
        assert answer.headers["Location"].startswith("http://testserver/store/")
        assert answer.headers["X-Linked-Size"] == str(len(adapter_files()["adapter_config.json"]))
        assert answer.headers["X-Repo-Commit"] == reader.info("v1").json()["sha"]


def test_main_may_move_between_the_head_and_the_bytes_that_a_client_asks_for(
    release: Release, reader: HubClient
) -> None:
    name = "adapter_model.safetensors"
    release("v1", seed=1, default=True)
    told = reader.resolve(name, method="HEAD")
    while told.status_code == 307:
        address = told.headers["Location"]
        told = reader.client.head(address)
    release("v2", seed=2, default=True)
    assert told.headers["ETag"] == f'"{hashlib.sha256(adapter_files(seed=1)[name]).hexdigest()}"'
    assert reader.client.get(address).getvalue() == adapter_files(seed=1)[name]
    assert reader.resolve(name).getvalue() == adapter_files(seed=2)[name]


@pytest.mark.parametrize("path", ["a\x01b\x7f.md", "\u202ea;X-Evil: 1", "a/" * 4000])
def test_what_a_caller_names_cannot_break_the_headers(release: Release, reader: HubClient, path: str) -> None:
    release("v1")
    said = reader.resolve(quote(path), "v1").headers["X-Error-Message"]
    assert said.isascii()
    assert said.isprintable()
    assert 10 < len(said) <= 500


def test_a_file_that_the_store_lost_is_not_told_to_be_absent(
    release: Release, reader: HubClient, store: ArtifactStore
) -> None:
    """Clients remember that a file is not there, and go on without those that they can do without."""
    version = release("v1")
    lost = Artifact.objects.get(files__path="adapter_config.json", files__version=version)
    store.delete(object_key(tenant="acme", sha256=lost.sha256))
    Artifact.objects.filter(pk=lost.pk).update(stored_at=None)
    assert reader.resolve("adapter_config.json", "v1").headers["X-Error-Code"] == "ObjectMissing"
    assert len(reader.api("GET", "/tree/v1").json()) == 2


def test_an_alias_that_goes_while_it_is_read_is_not_an_error(
    release: Release, reader: HubClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([{"prod": release("v1").pk}, {}, {}, {}])
    monkeypatch.setattr(PORTS, "alias_targets", lambda *, adapter_id: next(answers))
    assert reader.info("prod").status_code == 200


def test_a_files_name_may_hold_signs_that_addresses_keep_for_themselves(hub: HubClient, adapter: Adapter) -> None:
    name = "notes/é #1 & 100%.md"
    hub.push({name: b"x"})
    address = hub.resolve(quote(name), method="HEAD").headers["Location"]
    assert hub.client.get(address).getvalue() == b"x"
