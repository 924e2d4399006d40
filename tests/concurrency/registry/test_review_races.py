"""Reviews of one version that happen at the same moment as each other, as a new report, a refusal or a new policy."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from registry.actors import Actor
from registry.errors import DigestChanged, WrongState
from registry.models import Approval, AuditRecord, RetentionPolicy, Signature, Tenant, Version
from registry.quorum import Void
from registry.reports import StoredReport
from registry.reviews import review_of
from registry.selectors import versions_with_relations
from registry.services.approvals import approve_version, break_glass, decline_version
from registry.services.pipeline_signatures import change_signing_policy, revoke_pipeline_key
from registry.services.retention import apply_retention, plan_retention
from registry.services.review.policies import set_approval_policy
from registry.services.review.sealing import keep_seal
from registry.services.validation import record_revalidation, request_revalidation
from registry.states import Role, VersionState
from releases.services.aliases import set_alias
from tests.concurrency.racing import errors_in, race
from tests.factories.keys import make_pipeline_key
from tests.factories.registry import digest_for, make_actor, make_member, make_person, make_version

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent", "signer", "store")]
ATTEMPTS = pytest.mark.parametrize("attempt", range(2))


def reviewers(version: Version, count: int) -> list[Actor]:
    return [make_member(version.adapter.tenant, Role.REVIEWER) for _ in range(count)]


def approving(version: Version, actor: Actor, **more: Any) -> Callable[[], Version]:
    return lambda: approve_version(actor=actor, version=version, digest=version.root_digest, **more)


def ask_for(tenant: Tenant, required: int) -> None:
    set_approval_policy(actor=make_actor(), tenant=tenant, required=required, roles=[Role.REVIEWER])


def now(version: Version) -> Version:
    return versions_with_relations().get(pk=version.pk)


def assert_approved_once_by(version: Version, count: int) -> None:
    assert now(version).state == VersionState.APPROVED
    assert Signature.objects.filter(version=version).count() == 1
    (record,) = AuditRecord.objects.filter(action="adapter:version:approve")
    assert record.after is not None
    assert len(record.after["approved_by"]) == count


@ATTEMPTS
def test_two_reviewers_at_once_are_enough_for_a_policy_of_two(attempt: int) -> None:
    version = make_version(state=VersionState.CANDIDATE)
    ask_for(version.adapter.tenant, 2)
    results = race(*[approving(version, actor) for actor in reviewers(version, 2)])
    assert errors_in(results) == []
    assert Approval.objects.filter(version=version).count() == 2
    assert AuditRecord.objects.filter(action="adapter:approval:give").count() == 1
    assert_approved_once_by(version, 2)


def test_of_many_reviewers_at_once_as_many_approve_as_it_takes() -> None:
    version = make_version(state=VersionState.CANDIDATE)
    ask_for(version.adapter.tenant, 3)
    results = race(*[approving(version, actor) for actor in reviewers(version, 5)])
    assert [type(error) for error in errors_in(results)] == [WrongState] * 2
    assert_approved_once_by(version, 3)


@ATTEMPTS
def test_an_approval_racing_with_a_new_report_never_approves_what_nobody_looked_at(attempt: int) -> None:
    version = make_version(state=VersionState.CANDIDATE)
    (ben,) = reviewers(version, 1)
    asked = request_revalidation(actor=make_actor(), version=version)
    report = StoredReport("accept", "2", "", {}, digest_for("new"), 8, ("q_proj",))
    results = race(
        approving(version, ben, validation_digest=version.validation_digest),
        lambda: record_revalidation(actor=make_actor(), revalidation_id=asked.pk, report=report),
    )
    after = now(version)
    if after.state == VersionState.APPROVED:
        assert errors_in(results) == []
        assert after.validation_digest == version.validation_digest
    else:
        assert [type(error) for error in errors_in(results)] == [DigestChanged]
        assert (after.state, after.validation_digest) == (VersionState.CANDIDATE, report.digest)
        assert not Approval.objects.exists()


@ATTEMPTS
def test_a_first_approval_racing_with_a_new_report_is_void_or_for_the_new_one(attempt: int) -> None:
    version = make_version(state=VersionState.CANDIDATE)
    ask_for(version.adapter.tenant, 2)
    ben, cora = reviewers(version, 2)
    asked = request_revalidation(actor=make_actor(), version=version)
    report = StoredReport("warn", "2", "a reason", {}, digest_for("new"), 8, ("q_proj",))
    race(
        approving(version, ben),
        lambda: record_revalidation(actor=make_actor(), revalidation_id=asked.pk, report=report),
    )
    ((approval, void),) = review_of(now(version)).approvals
    assert void is (None if approval.validation_digest == report.digest else Void.CHANGED)
    approve_version(actor=cora, version=now(version), digest=version.root_digest)
    assert (now(version).state == VersionState.APPROVED) == (void is None)


@ATTEMPTS
def test_the_last_approval_racing_with_a_refusal_has_one_winner(attempt: int) -> None:
    version = make_version(state=VersionState.CANDIDATE)
    ask_for(version.adapter.tenant, 2)
    ben, cora, dan = reviewers(version, 3)
    approving(version, ben)()
    results = race(approving(version, cora), lambda: decline_version(actor=dan, version=version, reason="no"))
    assert [type(error) for error in errors_in(results)] == [WrongState]
    after = now(version)
    assert Signature.objects.filter(version=version).exists() == (after.state == VersionState.APPROVED)
    assert after.state in {VersionState.APPROVED, VersionState.REJECTED}


@ATTEMPTS
def test_an_approval_racing_with_a_stricter_policy_is_judged_by_one_of_the_two(attempt: int) -> None:
    version = make_version(state=VersionState.CANDIDATE)
    ben, cora = reviewers(version, 2)
    results = race(approving(version, ben), lambda: ask_for(version.adapter.tenant, 2))
    assert errors_in(results) == []
    if now(version).state == VersionState.CANDIDATE:
        assert not Signature.objects.filter(version=version).exists()
        approving(version, cora)()
        assert_approved_once_by(version, 2)
    else:
        assert_approved_once_by(version, 1)


@ATTEMPTS
def test_an_approval_racing_with_a_laxer_policy_is_signed_with_the_next_act_at_the_latest(attempt: int) -> None:
    version = make_version(state=VersionState.CANDIDATE)
    ask_for(version.adapter.tenant, 2)
    (ben,) = reviewers(version, 1)
    race(approving(version, ben), lambda: ask_for(version.adapter.tenant, 1))
    approving(version, ben)()
    assert_approved_once_by(version, 1)


@ATTEMPTS
def test_broken_glass_racing_with_an_approval_signs_once(attempt: int) -> None:
    version = make_version(state=VersionState.CANDIDATE)
    (ben,) = reviewers(version, 1)
    admin = make_actor(make_person(is_platform_admin=True))
    results = race(
        approving(version, ben),
        lambda: break_glass(actor=admin, version=version, digest=version.root_digest, reason="down"),
    )
    assert [type(error) for error in errors_in(results)] in ([], [WrongState])
    assert now(version).state == VersionState.APPROVED
    assert Signature.objects.filter(version=version).count() == 1


@ATTEMPTS
def test_bytes_go_or_an_alias_points_at_them_but_never_both(attempt: int) -> None:
    version = make_version()
    adapter = version.adapter
    manager = make_member(adapter.tenant, Role.RELEASE_MANAGER)
    policy = RetentionPolicy.objects.create(adapter=adapter, keep_days=1)
    Version.objects.filter(pk=version.pk).update(state_changed_at="2020-01-01T00:00:00Z")
    digest = plan_retention(policy=policy).digest
    results = race(
        lambda: apply_retention(actor=make_actor(), adapter=adapter, digest=digest),
        lambda: set_alias(actor=manager, tenant=adapter.tenant, name="a", adapter=adapter, version=version),
    )
    is_purged = now(version).purged_at is not None
    assert is_purged != version.aliases.exists()
    assert len(errors_in(results)) <= 1


@pytest.mark.parametrize("change", ["policy", "key"])
def test_what_is_asked_of_pipelines_changes_before_or_after_an_approval_and_never_in_the_middle(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = make_version(state=VersionState.CANDIDATE)
    tenant, system = version.adapter.tenant, make_actor()
    key, _signer = make_pipeline_key(tenant)
    acts: dict[str, Callable[[], object]] = {
        "policy": lambda: change_signing_policy(actor=system, tenant=tenant, require_pipeline_signature=True),
        "key": lambda: revoke_pipeline_key(actor=system, tenant=tenant, key_id=key.key_id, reason="stolen"),
    }
    results, waits = list[object](), list[bool]()
    changes = threading.Thread(target=lambda: results.extend(race(acts[change])))

    def change_in_the_middle(**facts: Any) -> Signature:
        changes.start()
        changes.join(timeout=0.5)
        waits.append(changes.is_alive())
        return keep_seal(**facts)

    monkeypatch.setattr("registry.services.approvals.keep_seal", change_in_the_middle)
    approving(version, *reviewers(version, 1))()
    changes.join(timeout=10)
    assert waits == [True]
    assert (len(results), errors_in(results)) == (1, [])
