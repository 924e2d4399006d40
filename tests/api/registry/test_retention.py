import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from cachecontrol.models import Residency
from cachecontrol.states import Desired, Observed
from registry.actors import system_actor
from registry.models import Adapter, Artifact, AuditRecord, RetentionPolicy, Version
from registry.naming import object_key
from registry.services import retention
from registry.services.purges import purged_with_bytes
from registry.services.retention import due_retentions, sweep_retention
from registry.services.stores import artifact_store
from registry.states import Role, VersionState
from registry.stores.errors import StoreUnavailable
from tests.factories.cachecontrol import make_node
from tests.factories.registry import make_version
from tests.factories.releases import point_alias
from workers.sweeps import sweep_all

URL = "/api/v1/tenants/acme/adapters/support-tone"
Caller = Callable[..., APIClient]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent", "signer", "store")]


def make_old(adapter: Adapter, *, state: VersionState = VersionState.APPROVED, days: int = 40, **facts: Any) -> Version:
    version = make_version(adapter=adapter, state=state, files=facts.pop("files", None), **facts)
    Version.objects.filter(pk=version.pk).update(state_changed_at=timezone.now() - timedelta(days=days))
    return version


def files(seed: str) -> dict[str, bytes]:
    return {"adapter_config.json": b"{}", "adapter_model.safetensors": seed.encode()}


def keep(admin: APIClient, days: int = 30, **more: Any) -> Any:
    return admin.put(f"{URL}/retention", {"keep_days": days, **more}, format="json")


def plan(admin: APIClient) -> dict[str, Any]:
    return dict(admin.get(f"{URL}/retention/plan").json())


def apply(admin: APIClient, digest: str) -> Any:
    return admin.post(f"{URL}/retention/apply", {"digest": digest}, format="json")


def test_without_a_policy_everything_is_kept(admin: APIClient, adapter: Adapter) -> None:
    assert admin.get(f"{URL}/retention").status_code == 404
    assert apply(admin, "0" * 64).status_code == 404


def test_a_plan_says_of_every_version_why_it_is_kept_and_removes_nothing(admin: APIClient, adapter: Adapter) -> None:
    first, second = make_old(adapter), make_old(adapter)
    for version in (first, second):
        point_alias(name="support", version=version)
    lonely = make_old(adapter, files=files("lonely"))
    recent = make_old(adapter, days=3)
    assert keep(admin).status_code == 200
    shown = plan(admin)
    assert {entry["version"]: entry["keep"] for entry in shown["versions"]} == {
        first.name: "aliased",
        second.name: "aliased",
        lonely.name: None,
        recent.name: "recent",
    }
    assert (shown["removed"], shown["bytes"]) == (1, len(b"lonely"))
    assert not Version.objects.filter(purged_at__isnull=False).exists()


def test_only_the_plan_that_was_looked_at_is_applied(admin: APIClient, adapter: Adapter) -> None:
    version = make_old(adapter, files=files("gone"))
    keep(admin)
    looked_at = plan(admin)["digest"]
    make_old(adapter)
    refused = apply(admin, looked_at)
    assert (refused.status_code, refused.json()["code"]) == (409, "plan_changed")
    assert not Version.objects.filter(purged_at__isnull=False).exists()
    assert apply(admin, plan(admin)["digest"]).json()["removed"] == 2
    version.refresh_from_db()
    assert version.purged_at is not None
    assert version.state == VersionState.APPROVED


def test_bytes_that_another_version_needs_stay(admin: APIClient, adapter: Adapter) -> None:
    shared = files("shared")
    old = make_old(adapter, files=shared)
    make_version(adapter=adapter, files=shared)
    alone = make_old(adapter, files={**files("alone"), "README.md": b"# x"})
    keep(admin)
    for artifact in Artifact.objects.all():
        put(artifact)
    apply(admin, plan(admin)["digest"])
    gone = {file.path for file in alone.files.filter(artifact__stored_at=None)}
    assert gone == {"adapter_model.safetensors", "README.md"}
    assert not old.files.filter(artifact__stored_at=None).exists()
    for file in alone.files.select_related("artifact"):
        key = object_key(tenant="acme", sha256=file.artifact.sha256)
        assert (artifact_store().stat(key) is None) == (file.path in gone)
    (record,) = AuditRecord.objects.filter(action="adapter:version:purge", object__name=str(alone))
    assert record.after == {"purged": True, "files_removed": 2, "bytes_removed": len(b"alone") + len(b"# x")}


def put(artifact: Artifact) -> None:
    contents = {len(content): content for content in (b"{}", b"shared", b"alone", b"# x")}
    key = object_key(tenant="acme", sha256=artifact.sha256)
    artifact_store().put_stream(key, io.BytesIO(contents[artifact.size]), size=artifact.size, sha256=artifact.sha256)


def test_a_purged_version_is_neither_approved_nor_aliased_nor_rolled_back_to(
    as_role: Caller, admin: APIClient, adapter: Adapter
) -> None:
    candidate = make_old(adapter, state=VersionState.CANDIDATE)
    approved = make_old(adapter)
    keep(admin)
    apply(admin, plan(admin)["digest"])
    url = f"{URL}/versions/{candidate.name}/approve"
    refused = as_role(Role.REVIEWER).post(url, {"digest": candidate.root_digest}, format="json")
    assert (refused.json()["code"], refused.status_code) == ("wrong_state", 409)
    body = {"adapter": adapter.name, "version": approved.name}
    refused = as_role(Role.RELEASE_MANAGER).put("/api/v1/tenants/acme/aliases/support", body, format="json")
    assert (refused.json()["code"], refused.status_code) == ("target_not_servable", 409)
    assert [each["name"] for each in as_role(Role.REVIEWER).get("/api/v1/inbox").json()["results"]] == []


def test_it_is_applied_by_itself_only_after_it_was_by_hand(admin: APIClient, adapter: Adapter) -> None:
    keep(admin)
    refused = keep(admin, automatic=True)
    assert (refused.status_code, refused.json()["code"]) == (409, "policy_not_tried")
    apply(admin, plan(admin)["digest"])
    assert keep(admin, automatic=True).json()["automatic"] is True
    assert keep(admin, days=10, automatic=True).status_code == 409
    old = make_old(adapter)
    (due,) = due_retentions()
    sweep_retention(actor=system_actor("sweep"), policy_id=due)
    old.refresh_from_db()
    assert old.purged_at is not None
    assert due_retentions() == []


def test_a_store_that_fails_half_way_leaves_no_version_that_can_be_served_without_its_files(
    as_role: Caller, admin: APIClient, adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = make_old(adapter, files={**files("alone"), "README.md": b"# x"})
    for artifact in Artifact.objects.all():
        put(artifact)
    keep(admin)
    delete, gone = type(artifact_store()).delete, list[str]()

    def fail_at_the_second(self: Any, key: str) -> None:
        if gone:
            raise StoreUnavailable("away")
        gone.append(key)
        delete(self, key)

    with monkeypatch.context() as patch:
        patch.setattr(type(artifact_store()), "delete", fail_at_the_second)
        assert apply(admin, plan(admin)["digest"]).status_code == 503
    body = {"adapter": adapter.name, "version": old.name}
    refused = as_role(Role.RELEASE_MANAGER).put("/api/v1/tenants/acme/aliases/support", body, format="json")
    assert (refused.json()["code"], refused.status_code) == ("target_not_servable", 409)
    assert purged_with_bytes() == [old.pk]
    sweep_all()
    assert purged_with_bytes() == []
    for file in old.files.select_related("artifact"):
        assert artifact_store().stat(object_key(tenant="acme", sha256=file.artifact.sha256)) is None


def test_bytes_that_another_version_needs_are_not_looked_at_again_by_the_sweep(
    admin: APIClient, adapter: Adapter
) -> None:
    make_old(adapter, files=files("shared"))
    make_version(adapter=adapter, files=files("shared"))
    keep(admin)
    assert apply(admin, plan(admin)["digest"]).json()["removed"] == 1
    assert purged_with_bytes() == []


def test_who_keeps_longer_while_a_plan_is_applied_keeps(
    admin: APIClient, adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = make_old(adapter)
    keep(admin)
    looked_at = plan(admin)["digest"]
    look = retention.plan_retention

    def look_and_lose_the_race(*, policy: RetentionPolicy) -> retention.RetentionPlan:
        found = look(policy=policy)
        assert keep(admin, days=300).status_code == 200
        return found

    monkeypatch.setattr(retention, "plan_retention", look_and_lose_the_race)
    refused = apply(admin, looked_at)
    assert (refused.status_code, refused.json()["code"]) == (409, "plan_changed")
    old.refresh_from_db()
    assert old.purged_at is None


def test_a_sweep_stops_when_it_is_no_longer_to_go_by_itself(
    admin: APIClient, adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(admin)
    apply(admin, plan(admin)["digest"])
    assert keep(admin, automatic=True).status_code == 200
    old, (due,), look = make_old(adapter), due_retentions(), retention.plan_retention

    def look_and_lose_the_race(*, policy: RetentionPolicy) -> retention.RetentionPlan:
        found = look(policy=policy)
        assert keep(admin, automatic=False).status_code == 200
        return found

    with monkeypatch.context() as patch:
        patch.setattr(retention, "plan_retention", look_and_lose_the_race)
        sweep_retention(actor=system_actor("sweep"), policy_id=due)
    old.refresh_from_db()
    assert old.purged_at is None


def test_what_a_node_was_told_to_load_is_kept_before_it_has_it(admin: APIClient, adapter: Adapter) -> None:
    wanted = make_old(adapter)
    node = make_node(base_revision=wanted.base_revision)
    Residency.objects.create(
        node=node,
        version=wanted,
        desired=Desired.GPU.value,
        observed=Observed.ABSENT.value,
        state_changed_at=timezone.now(),
    )
    keep(admin)
    assert [entry["keep"] for entry in plan(admin)["versions"]] == ["on_nodes"]


def test_a_plan_takes_no_more_queries_for_more_versions(admin: APIClient, adapter: Adapter) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            plan(admin)
        return len(caught)

    make_old(adapter)
    keep(admin)
    queries()
    one = queries()
    for _ in range(3):
        make_old(adapter)
    assert queries() == one


def test_a_way_back_is_kept_however_old(admin: APIClient, adapter: Adapter) -> None:
    from releases.models import AliasRevision

    before, now = make_old(adapter), make_old(adapter)
    for version in (before, now):
        point_alias(name="support", version=version)
    with pytest.MonkeyPatch.context() as patch:
        later = timezone.now() + timedelta(days=60)
        patch.setattr(timezone, "now", lambda: later)
        keep(admin)
        kept = {entry["version"]: entry["keep"] for entry in plan(admin)["versions"]}
    assert AliasRevision.objects.count() == 2
    assert kept == {before.name: "rollback_target", now.name: "aliased"}


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.RELEASE_MANAGER, Role.UPLOADER])
def test_nobody_of_the_tenant_removes_bytes(as_role: Caller, admin: APIClient, adapter: Adapter, role: Role) -> None:
    keep(admin)
    assert keep(as_role(role)).status_code == 403
    assert apply(as_role(role), plan(admin)["digest"]).status_code == 403
    assert as_role(role).get(f"{URL}/retention/plan").status_code == 200
