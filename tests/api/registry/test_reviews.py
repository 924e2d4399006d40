"""Policies, reviews, comments, the inbox, broken glass and who still holds what was taken back."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from registry import ports
from registry.actors import system_actor
from registry.models import Adapter, Approval, AuditRecord, Person, Tenant, Version
from registry.services.tokens import create_platform_token
from registry.states import Role, Scope, TokenKind, VersionState
from registry.transitions import move_version
from tests.api.registry.conftest import client_with
from tests.factories.registry import digest_for, make_person, make_version

POLICY = "/api/v1/tenants/acme/approval-policy"
Caller = Callable[..., APIClient]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent", "signer")]


@pytest.fixture
def candidate(adapter: Adapter) -> Version:
    return make_version(adapter=adapter, state=VersionState.CANDIDATE)


def url_of(version: Version, verb: str) -> str:
    return f"/api/v1/tenants/acme/adapters/{version.adapter.name}/versions/{version.name}/{verb}"


def approve(client: APIClient, version: Version, **body: Any) -> Any:
    return client.post(url_of(version, "approve"), {"digest": version.root_digest, **body}, format="json")


def set_policy(admin: APIClient, **policy: Any) -> Any:
    return admin.put(POLICY, {"required": 1, "roles": ["reviewer"], **policy}, format="json")


def actions_on(chain: str) -> list[str]:
    return list(AuditRecord.objects.filter(chain=chain).order_by("seq").values_list("action", flat=True))


def revalidated(version: Version) -> None:
    Version.objects.filter(pk=version.pk).update(validation_digest=digest_for("a new report"))


def test_a_tenant_has_the_default_policy_until_an_admin_sets_another(as_role: Caller, admin: APIClient) -> None:
    default = as_role(Role.VIEWER).get(POLICY)
    assert default.json() == {
        "required": 1,
        "roles": ["reviewer"],
        "only_people": [],
        "required_people": [],
        "validity_days": None,
    }
    changed = set_policy(admin, required=2, roles=["release_manager", "reviewer"], validity_days=30)
    assert changed.status_code == 200, changed.json()
    assert as_role(Role.VIEWER).get(POLICY).json() == changed.json()
    assert set_policy(admin, required=2, roles=["reviewer", "release_manager"], validity_days=30).status_code == 200
    (record,) = AuditRecord.objects.filter(action="tenant:approval_policy:set")
    assert record.before is not None
    assert (record.before["required"], record.after) == (1, changed.json())


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.RELEASE_MANAGER, Role.UPLOADER])
def test_nobody_of_the_tenant_sets_its_policy(as_role: Caller, role: Role) -> None:
    assert set_policy(as_role(role)).status_code == 403


def test_a_policy_changed_meanwhile_is_not_overwritten(admin: APIClient, tenant: Tenant) -> None:
    seen = admin.get(POLICY)["ETag"]
    assert set_policy(admin, required=2).status_code == 200
    late = admin.put(POLICY, {"required": 3, "roles": ["reviewer"]}, format="json", headers={"If-Match": seen})
    assert late.status_code == 412


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"required": 0}, "required"),
        ({"required": 21}, "required"),
        ({"roles": []}, "roles"),
        ({"roles": ["uploader"]}, "roles.0"),
        ({"validity_days": 0}, "validity_days"),
        ({"only_people": ["nobody@example.com"]}, "only_people"),
        ({"required_people": ["viewer@example.com"]}, "required_people"),
    ],
)
def test_a_policy_that_could_never_be_met_is_refused(
    admin: APIClient, tenant: Tenant, policy: dict[str, Any], field: str
) -> None:
    make_person(email="viewer@example.com", roles={tenant: [Role.VIEWER]})
    answer = set_policy(admin, **policy)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


def test_people_are_named_consistently(admin: APIClient, tenant: Tenant) -> None:
    ben, cora = (make_person(roles={tenant: [Role.REVIEWER]}).email for _ in range(2))
    assert set_policy(admin, required=2, only_people=[ben]).json()["field"] == "required"
    assert set_policy(admin, only_people=[ben], required_people=[cora]).json()["field"] == "required_people"
    assert set_policy(admin, only_people=[ben, cora], required_people=[cora.upper()]).status_code == 200


def test_two_approvals_are_told_apart_and_the_second_signs(
    as_role: Caller, admin: APIClient, candidate: Version
) -> None:
    set_policy(admin, required=2)
    first = approve(as_role(Role.REVIEWER), candidate, comment="one")
    assert (first.status_code, first.json()["state"]) == (200, "candidate")
    review = as_role(Role.VIEWER).get(url_of(candidate, "review")).json()
    assert (review["required"], review["given"], review["met"]) == (2, 1, False)
    assert approve(as_role(Role.REVIEWER), candidate).json()["state"] == "candidate"
    assert Approval.objects.count() == 1
    second = approve(as_role(Role.REVIEWER, new=True), candidate)
    assert second.json()["state"] == "approved"
    assert as_role(Role.VIEWER).get(url_of(candidate, "signature")).status_code == 200
    story = [action for action in actions_on("acme") if action.startswith("adapter:")]
    assert story == ["adapter:approval:give", "adapter:version:approve"]
    made = AuditRecord.objects.get(action="adapter:version:approve")
    assert made.after is not None
    assert len(made.after["approved_by"]) == 2


def test_a_policy_lets_other_roles_approve_and_the_default_does_not(
    as_role: Caller, admin: APIClient, candidate: Version
) -> None:
    manager = as_role(Role.RELEASE_MANAGER)
    assert approve(manager, candidate).status_code == 403
    set_policy(admin, roles=["release_manager"])
    assert approve(as_role(Role.REVIEWER), candidate).status_code == 403
    assert approve(manager, candidate).json()["state"] == "approved"


def test_named_people_alone_approve(as_role: Caller, admin: APIClient, candidate: Version, tenant: Tenant) -> None:
    named = make_person(roles={tenant: [Role.REVIEWER]})
    set_policy(admin, only_people=[named.email])
    refused = approve(as_role(Role.REVIEWER), candidate)
    assert refused.status_code == 403
    assert named.email in refused.json()["detail"]


def test_a_new_report_voids_approvals_and_the_reviewer_may_approve_again(
    as_role: Caller, admin: APIClient, candidate: Version
) -> None:
    set_policy(admin, required=2)
    ben = as_role(Role.REVIEWER)
    approve(ben, candidate)
    revalidated(candidate)
    review = ben.get(url_of(candidate, "review")).json()
    assert (review["given"], review["approvals"][0]["void"]) == (0, "changed")
    assert ben.get(url_of(candidate, "")[:-1]).json()["approvals"][0]["current"] is False
    assert approve(as_role(Role.REVIEWER, new=True), candidate).json()["state"] == "candidate"
    assert approve(ben, candidate).json()["state"] == "approved"


def test_a_reviewer_who_looked_at_another_report_is_told(as_role: Caller, candidate: Version) -> None:
    seen = candidate.validation_digest
    revalidated(candidate)
    late = approve(as_role(Role.REVIEWER), candidate, validation_digest=seen)
    assert (late.status_code, late.json()["code"], late.json()["field"]) == (409, "digest_changed", "validation_digest")
    assert not Approval.objects.exists()


def test_an_approval_expires_and_can_be_given_again(as_role: Caller, admin: APIClient, candidate: Version) -> None:
    set_policy(admin, required=2, validity_days=7)
    ben = as_role(Role.REVIEWER)
    approve(ben, candidate)
    set_policy(admin, required=2, validity_days=1)
    later = timezone.now() + timedelta(days=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timezone, "now", lambda: later)
        assert ben.get(url_of(candidate, "review")).json()["approvals"][0]["void"] == "expired"
        assert candidate.name in [each["name"] for each in ben.get("/api/v1/inbox").json()["results"]]
        assert approve(ben, candidate).json()["state"] == "candidate"
    assert Approval.objects.count() == 2


def test_a_laxer_policy_completes_with_the_next_act_of_an_approver(
    as_role: Caller, admin: APIClient, candidate: Version
) -> None:
    set_policy(admin, required=2)
    ben = as_role(Role.REVIEWER)
    approve(ben, candidate)
    set_policy(admin, required=1)
    candidate.refresh_from_db()
    assert candidate.state == VersionState.CANDIDATE
    assert approve(ben, candidate).json()["state"] == "approved"
    assert Approval.objects.count() == 1


def test_the_inbox_holds_what_one_can_approve_now(
    as_role: Caller, admin: APIClient, adapter: Adapter, candidate: Version, tenant: Tenant
) -> None:
    set_policy(admin, required=2)
    ben = as_role(Role.REVIEWER)
    own = make_version(adapter=adapter, state=VersionState.CANDIDATE)
    tenant.memberships.create(person=own.uploader, role=Role.REVIEWER.value)
    make_version(adapter=adapter, state=VersionState.REJECTED)
    make_version(state=VersionState.CANDIDATE)
    found = ben.get("/api/v1/inbox").json()["results"]
    assert [each["name"] for each in found] == [candidate.name, own.name]
    assert found[0]["review"] == {"required": 2, "given": 0, "missing_people": [], "met": False}
    approve(ben, candidate)
    assert [each["name"] for each in ben.get("/api/v1/inbox").json()["results"]] == [own.name]
    revalidated(candidate)
    assert len(ben.get("/api/v1/inbox").json()["results"]) == 2
    assert [each["name"] for each in own_inbox(own.uploader)] == [candidate.name]
    assert as_role(Role.VIEWER).get("/api/v1/inbox").json()["results"] == []


def names_in_inbox(client: APIClient) -> list[str]:
    return [each["name"] for each in client.get("/api/v1/inbox").json()["results"]]


def test_the_inbox_holds_again_what_a_laxer_policy_lets_one_complete(
    as_role: Caller, admin: APIClient, adapter: Adapter, candidate: Version
) -> None:
    other = make_version(adapter=adapter, state=VersionState.CANDIDATE)
    set_policy(admin, required=3)
    ben, cora = as_role(Role.REVIEWER), as_role(Role.REVIEWER, Role.VIEWER)
    for client, version in ((ben, candidate), (cora, candidate), (ben, other)):
        approve(client, version)
    assert names_in_inbox(ben) == []
    set_policy(admin, required=2)
    assert names_in_inbox(ben) == [candidate.name]
    assert approve(ben, candidate).json()["state"] == "approved"


def test_the_inbox_holds_nothing_that_still_lacks_its_pipelines_signature(
    as_role: Caller, tenant: Tenant, candidate: Version
) -> None:
    tenant.require_pipeline_signature = True
    tenant.save()
    assert names_in_inbox(as_role(Role.REVIEWER)) == []


def test_the_inbox_takes_no_more_queries_for_more_candidates(
    as_role: Caller, admin: APIClient, adapter: Adapter, candidate: Version
) -> None:
    set_policy(admin, required=2)
    ben, cora = as_role(Role.REVIEWER), as_role(Role.REVIEWER, Role.VIEWER)

    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            assert ben.get("/api/v1/inbox").status_code == 200
        return len(caught)

    approve(cora, candidate)
    queries()
    one = queries()
    for _ in range(3):
        approve(cora, make_version(adapter=adapter, state=VersionState.CANDIDATE))
    assert len(names_in_inbox(ben)) == 4
    assert queries() == one


def own_inbox(person: Person) -> list[dict[str, Any]]:
    token = create_platform_token(
        actor=system_actor("test"), name="own", kind=TokenKind.PERSON, scopes=[Scope.READ], person=person
    )
    answer = client_with(token.text).get("/api/v1/inbox")
    return list(answer.json()["results"])


def test_comments_are_kept_in_their_order_with_their_authors(as_role: Caller, candidate: Version) -> None:
    for role, text in ((Role.REVIEWER, "why so loud?"), (Role.UPLOADER, "the data is")):
        assert as_role(role).post(url_of(candidate, "comments"), {"text": text}, format="json").status_code == 201
    refused = as_role(Role.VIEWER).post(url_of(candidate, "comments"), {"text": "me too"}, format="json")
    assert refused.status_code == 403
    found = as_role(Role.VIEWER).get(url_of(candidate, "comments")).json()["results"]
    assert [each["text"] for each in found] == ["why so loud?", "the data is"]
    assert found[0]["author"] != found[1]["author"]
    assert actions_on("acme").count("adapter:comment:write") == 2


def break_glass(client: APIClient, version: Version, **body: Any) -> Any:
    return client.post(
        url_of(version, "break-glass"),
        {"digest": version.root_digest, "reason": "site down", **body},
        format="json",
    )


def test_broken_glass_is_told_on_both_chains_and_in_the_attestation(
    as_role: Caller, admin: APIClient, candidate: Version, caplog: pytest.LogCaptureFixture
) -> None:
    set_policy(admin, required=3)
    answer = break_glass(admin, candidate)
    assert (answer.status_code, answer.json()["state"]) == (200, "approved")
    assert answer.json()["approvals"][0]["break_glass"] is True
    for chain, action in (("acme", "adapter:version:break_glass"), ("platform", "platform:break_glass:use")):
        assert AuditRecord.objects.get(chain=chain, action=action).reason == "site down"
    assert "broke the glass" in caplog.text


def test_broken_glass_takes_a_reason_the_right_digest_and_a_platform_admin(
    as_role: Caller, admin: APIClient, candidate: Version
) -> None:
    assert break_glass(admin, candidate, reason="").json()["field"] == "reason"
    assert break_glass(admin, candidate, reason=" \t").status_code == 400
    assert break_glass(admin, candidate, digest="0" * 64).json()["code"] == "digest_changed"
    assert break_glass(as_role(*Role), candidate).status_code == 403
    assert approve(admin, candidate).status_code == 403
    assert not Approval.objects.exists()


def test_broken_glass_is_never_for_ones_own_upload(admin: APIClient, adapter: Adapter) -> None:
    me = Person.objects.get(is_platform_admin=True)
    own = make_version(adapter=adapter, state=VersionState.CANDIDATE, uploader=me)
    assert break_glass(admin, own).json()["code"] == "self_approval"


def test_taking_a_version_back_says_who_still_holds_it(
    as_role: Caller, adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = (ports.Holder("n1", "loaded", "gpu"), ports.Holder("n2", "on_disk", "absent"))
    monkeypatch.setattr(ports.PORTS, "holders_of", lambda *, version_id: held)
    version = make_version(adapter=adapter)
    revoked = as_role(Role.RELEASE_MANAGER).post(url_of(version, "revoke"), {"reason": "leak"}, format="json")
    shown = [
        {"node": "n1", "observed": "loaded", "desired": "gpu"},
        {"node": "n2", "observed": "on_disk", "desired": "absent"},
    ]
    assert (revoked.json()["state"], revoked.json()["holders"]) == ("revoked", shown)
    assert as_role(Role.VIEWER).get(url_of(version, "holders")).json() == {"results": shown, "next": None}


def test_what_was_declined_or_taken_back_is_not_approved(as_role: Caller, candidate: Version) -> None:
    move_version(candidate, was=VersionState.CANDIDATE, to=VersionState.REVOKED)
    assert approve(as_role(Role.REVIEWER), candidate).json()["code"] == "wrong_state"
