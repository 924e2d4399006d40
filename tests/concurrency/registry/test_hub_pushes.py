"""Pushes over the hub-compatible API that race, and pushes that are killed before every step in turn."""

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from registry.actors import Actor, system_actor
from registry.errors import NameTaken, PreconditionFailed, RevisionNotFound
from registry.hub.names import MAIN
from registry.models import Adapter, Artifact, AuditRecord, HubCommit, HubDraft, HubFile, Tenant, Version
from registry.services.base_models import register_base_revision
from registry.services.hub.drafts import create_branch, create_repo, pushed_tree
from registry.services.hub.expiry import remove_draft
from registry.services.hub.repos import find_repo
from registry.services.hub.versions import cut_version
from registry.services.purges import remove_unneeded
from registry.states import Role, VersionState
from tests.concurrency.killing import Killed, Steps, count_commits, count_store_calls
from tests.concurrency.racing import errors_in, race
from tests.factories.adapters import BASE_NAME, adapter_files, tiny_description
from tests.factories.hub import push_files
from tests.factories.registry import make_adapter, make_member, make_tenant
from workers.sweeps import sweep_all

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("store", "sent")]


@pytest.fixture
def tenant() -> Tenant:
    register_base_revision(
        actor=system_actor("test"), name=BASE_NAME, label="r1", description=tiny_description(), max_rank=16
    )
    return make_tenant(name="acme")


@pytest.fixture
def uploader(tenant: Tenant) -> Actor:
    return make_member(tenant, Role.UPLOADER)


def push(actor: Actor, files: dict[str, bytes], *, parent: str | None = None) -> str:
    return push_files(actor, "acme/tone", files, parent=parent)


def begin(actor: Actor, tenant: Tenant) -> None:
    try:
        create_repo(actor=actor, tenant=tenant, name="tone")
    except NameTaken:
        return


def throw_away(draft_id: int) -> None:
    remove_draft(actor=system_actor("test"), draft_id=draft_id, reason="")


def cut(actor: Actor, name: str) -> Version:
    return cut_version(actor=actor, repo=find_repo(actor=actor, tenant="acme", name="tone"), name=name, revision=MAIN)


def test_pushes_at_the_same_moment_both_stay(uploader: Actor, tenant: Tenant) -> None:
    begin(uploader, tenant)
    results = race(*[lambda name=name: push(uploader, {name: b"same bytes"}) for name in ("a.md", "b.md", "c.md")])
    assert errors_in(results) == []
    repo = find_repo(actor=uploader, tenant="acme", name="tone")
    tree = pushed_tree(actor=uploader, repo=repo, revision=MAIN)
    assert [file.path for file in tree.files] == ["a.md", "b.md", "c.md"]
    assert Artifact.objects.count() == 1


def test_of_pushes_on_the_same_parent_one_wins(uploader: Actor, tenant: Tenant) -> None:
    begin(uploader, tenant)
    parent = push(uploader, {"a.md": b"0"})
    results = race(*[lambda text=text: push(uploader, {"a.md": text}, parent=parent) for text in (b"1", b"2")])
    assert [type(error) for error in errors_in(results)] == [PreconditionFailed]
    assert HubCommit.objects.count() == 2


def test_the_same_tag_cut_twice_at_once_is_one_version_of_one_adapter(uploader: Actor, tenant: Tenant) -> None:
    begin(uploader, tenant)
    push(uploader, adapter_files())
    race(*[lambda: cut(uploader, "v1") for _time in range(3)])
    assert Version.objects.get().state == VersionState.VALIDATING
    assert Adapter.objects.count() == 1
    assert AuditRecord.objects.filter(action="adapter:version:finalize").count() == 1


def test_a_kill_before_any_step_is_made_good_by_doing_the_same_again(
    uploader: Actor, tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    def bring(number: int) -> Version:
        begin(uploader, tenant)
        push(uploader, adapter_files(seed=number))
        return Version.objects.filter(name=f"v{number}").exclude(state="uploading").first() or cut(
            uploader, f"v{number}"
        )

    kills = 0
    while True:
        kills += 1
        steps = Steps(kill_before=kills)
        with monkeypatch.context() as patch:
            count_store_calls(patch, steps)
            count_commits(patch, steps)
            try:
                bring(kills)
            except Killed:
                pass
            else:
                break
        assert bring(kills).state == VersionState.VALIDATING
        assert Version.objects.filter(name=f"v{kills}").count() == 1
    print(f"\nkilled before each of {kills - 1} steps")
    assert kills > 10
    assert HubCommit.objects.filter(sealed_at=None).exists()
    settings.HUB_DRAFT_TTL_S = 0
    sweep_all()
    sweep_all()
    for left in (HubDraft, HubCommit, HubFile):
        assert not left.objects.exists()
    lying = {path.name for path in (tmp_path / "store").rglob("*") if path.is_file()}
    needed = Artifact.objects.filter(files__isnull=False).values_list("sha256", flat=True)
    assert lying == set(needed)


def test_a_branch_never_begins_with_the_files_of_a_version_whose_bytes_are_being_removed(
    uploader: Actor, tenant: Tenant
) -> None:
    """The removal has looked for others that need the bytes; the branch has looked for the version."""
    begin(uploader, tenant)
    push(uploader, adapter_files())
    version = cut(uploader, "v1")
    throw_away(HubDraft.objects.get().pk)
    repo = find_repo(actor=uploader, tenant="acme", name="tone")
    removing, began = threading.Event(), threading.Event()

    def remove() -> None:
        with transaction.atomic():
            remove_unneeded(Version.objects.select_for_update().get(pk=version.pk))
            removing.set()
            began.wait(0.5)
            Version.objects.filter(pk=version.pk).update(purged_at=timezone.now())

    def branch() -> None:
        removing.wait(5)
        try:
            create_branch(actor=uploader, repo=repo, branch="next", start="v1")
        finally:
            began.set()

    results = race(remove, branch)
    assert [type(error) for error in errors_in(results)] == [RevisionNotFound]
    assert not HubFile.objects.exists()


def test_a_branch_that_goes_while_pushes_come_leaves_a_push_whole_or_refused(
    uploader: Actor, tenant: Tenant, tmp_path: Path
) -> None:
    begin(uploader, tenant)
    make_adapter(tenant=tenant, name="tone")
    files = [{f"{number}.md": b"%d" % number, "same.md": b"same"} for number in range(4)]
    for _round in range(4):
        push(uploader, {"same.md": b"same"})
        results = race(
            *[partial(push, uploader, content) for content in files],
            partial(throw_away, HubDraft.objects.get().pk),
        )
        assert {type(error) for error in errors_in(results)} <= {RevisionNotFound}
    kept = set(HubFile.objects.values_list("artifact__sha256", flat=True))
    assert {path.name for path in (tmp_path / "store" / "artifacts").rglob("*") if path.is_file()} == kept
    assert not HubCommit.objects.filter(sealed_at=None).exists()


def test_a_branch_begun_twice_at_once_is_begun_once(uploader: Actor, tenant: Tenant) -> None:
    begin(uploader, tenant)
    push(uploader, {"a.md": b"a"})
    repo = find_repo(actor=uploader, tenant="acme", name="tone")
    results = race(*[lambda: create_branch(actor=uploader, repo=repo, branch="next", start=MAIN) for _time in range(3)])
    assert [type(error) for error in errors_in(results)] == [NameTaken, NameTaken]
