"""Making a release and consenting to it: what it is bound to, who may, and what is refused."""

import json
from typing import Any

import pytest

from registry.actors import Actor
from registry.errors import DigestChanged, InvalidInput, NotAMember, NotFound, PermissionDenied, SelfApproval
from registry.models import AuditRecord, Version
from registry.states import Role, Scope, VersionState
from releases.errors import (
    AliasIsSplit,
    ApprovalsMissing,
    ReleaseActive,
    ReleaseNeeded,
    RevisionChanged,
    TargetNotServable,
    WrongReleaseState,
)
from releases.models import Alias, AliasProtection, AliasSplit, Release
from releases.plan.sequence import release_digest
from releases.selectors import active_release, get_release, list_releases, versions_aliased_since
from releases.services.aliases import set_alias
from releases.services.releases.approve import approve_release
from releases.services.releases.make import make_release
from releases.services.releases.verbs import abort_release, promote_release, start_release
from releases.services.splits import SplitWish, clear_split, set_split
from releases.services.templates import write_template
from releases.states import ReleaseState
from tests.factories.registry import (
    make_actor,
    make_adapter,
    make_member,
    make_person,
    make_tenant,
    make_version,
)
from tests.factories.releases import SHORT_PLAN, begin_release, consent, point_alias

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]

NEEDS_TWO = SHORT_PLAN | {"approvals": 2}


@pytest.fixture
def alias() -> Alias:
    return point_alias(name="support", version=make_version())


@pytest.fixture
def candidate(alias: Alias) -> Version:
    return make_version(adapter=alias.adapter)


@pytest.fixture
def manager(alias: Alias) -> Actor:
    return make_member(alias.tenant, Role.RELEASE_MANAGER)


def make(actor: Actor, alias: Alias, candidate: Version, **facts: Any) -> Release:
    return make_release(actor=actor, alias=alias, candidate=candidate, **facts)


def protect(alias: Alias, **facts: Any) -> None:
    AliasProtection.objects.create(alias=alias, changed_at=alias.updated_at, **facts)


def test_a_release_is_pending_with_all_its_steps_and_changes_nothing(
    alias: Alias, candidate: Version, manager: Actor
) -> None:
    release = make(manager, alias, candidate, reason="better answers")
    assert (release.state, release.number, release.revision, release.step) == (ReleaseState.PENDING, 1, 1, 0)
    assert (release.stable_id, release.stable_revision, release.candidate_id) == (alias.version_id, 1, candidate.pk)
    assert [step.kind for step in release.steps.all()] == [
        "prewarm", "evaluate", "shadow", "canary", "canary", "promote",
    ]  # fmt: skip
    assert release.sentence == "It waits for the approval of one more person."
    assert not AliasSplit.objects.exists()
    assert active_release(alias.pk) == release
    record = AuditRecord.objects.get(action="tenant:release:make")
    assert (record.reason, record.object["name"]) == ("better answers", f"{alias}#1")
    assert record.after
    assert record.after["digest"] == release.digest


def test_the_digest_is_that_of_alias_both_versions_and_plan(alias: Alias, candidate: Version, manager: Actor) -> None:
    release = make(manager, alias, candidate)
    assert release.digest == release_digest(
        alias=str(alias), stable=alias.version.root_digest, candidate=candidate.root_digest, plan=release.plan
    )


def test_the_plan_is_the_templates_newest_edition_and_stays_when_the_template_changes(
    alias: Alias, candidate: Version, manager: Actor
) -> None:
    write_template(actor=manager, tenant=alias.tenant, name="quick", text="shadow: null\napprovals: 2\n")
    newest = write_template(actor=manager, tenant=alias.tenant, name="quick", text="shadow: null\napprovals: 3\n")
    release = make(manager, alias, candidate, template="quick")
    assert (release.template, release.plan["approvals"], release.plan["shadow"]) == (newest, 3, None)
    write_template(actor=manager, tenant=alias.tenant, name="quick", text="approvals: 0\n")
    assert get_release(actor=manager, tenant=alias.tenant.name, alias="support", number=1).plan["approvals"] == 3


def test_a_plan_that_is_none_and_a_template_that_is_not_there_are_named(
    alias: Alias, candidate: Version, manager: Actor
) -> None:
    with pytest.raises(InvalidInput) as caught:
        make(manager, alias, candidate, plan_text="approvals: many")
    assert caught.value.field == "approvals"
    with pytest.raises(NotFound) as missing:
        make(manager, alias, candidate, template="slow")
    assert missing.value.field == "template"


def test_the_same_release_made_again_is_the_same_release(alias: Alias, candidate: Version, manager: Actor) -> None:
    release = make(manager, alias, candidate)
    assert make(manager, alias, candidate) == release
    assert AuditRecord.objects.filter(action="tenant:release:make").count() == 1


def test_there_is_one_active_release_per_alias(alias: Alias, candidate: Version, manager: Actor) -> None:
    release = make(manager, alias, candidate)
    others: list[tuple[Actor, Version, dict[str, Any]]] = [
        (make_member(alias.tenant, Role.RELEASE_MANAGER), candidate, {}),
        (manager, make_version(adapter=alias.adapter), {}),
        (manager, candidate, {"plan_text": "approvals: 0"}),
    ]
    for actor, version, facts in others:
        with pytest.raises(ReleaseActive, match="release 1 of"):
            make(actor, alias, version, **facts)
    abort_release(actor=manager, release=release)
    assert make(manager, alias, candidate, plan_text="approvals: 0").number == 2


def test_only_another_approved_version_of_the_tenant_and_base_model_is_a_candidate(
    alias: Alias, manager: Actor
) -> None:
    sibling = make_adapter(tenant=alias.tenant, base_model=alias.adapter.base_model)
    refused = [
        alias.version,
        make_version(),
        make_version(adapter=make_adapter(tenant=alias.tenant)),
        make_version(adapter=alias.adapter, state=VersionState.CANDIDATE),
        make_version(adapter=alias.adapter, state=VersionState.YANKED),
        make_version(adapter=alias.adapter, state=VersionState.REVOKED),
    ]
    for version in refused:
        with pytest.raises(TargetNotServable) as caught:
            make(manager, alias, version)
        assert caught.value.field == "candidate"
    assert make(manager, alias, make_version(adapter=sibling)).state == ReleaseState.PENDING


def test_an_alias_that_is_split_by_hand_is_not_released(alias: Alias, candidate: Version, manager: Actor) -> None:
    set_split(actor=manager, alias=alias, wish=SplitWish(candidate=candidate, basis_points=100))
    with pytest.raises(AliasIsSplit):
        make(manager, alias, candidate)
    clear_split(actor=manager, alias=alias)
    make(manager, alias, candidate)


def test_a_release_holds_for_the_revision_that_its_maker_saw(alias: Alias, candidate: Version, manager: Actor) -> None:
    with pytest.raises(RevisionChanged):
        make(manager, alias, candidate, expected_revision=2)
    make(manager, alias, candidate, expected_revision=1)


def test_while_a_release_is_active_nobody_moves_or_splits_its_alias(
    alias: Alias, candidate: Version, manager: Actor
) -> None:
    begin_release(alias=alias, candidate=candidate)
    other = make_version(adapter=alias.adapter)
    with pytest.raises(ReleaseActive, match="release 1 of"):
        point_alias(name="support", version=other, actor=manager)
    with pytest.raises(ReleaseActive):
        set_split(actor=manager, alias=alias, wish=SplitWish(candidate=other))
    with pytest.raises(ReleaseActive):
        clear_split(actor=manager, alias=alias)
    here = set_alias(actor=manager, tenant=alias.tenant, name="support", adapter=alias.adapter, version=alias.version)
    assert here.revision == 1


def test_what_a_release_goes_from_and_to_keeps_its_files(alias: Alias, candidate: Version) -> None:
    release = begin_release(alias=alias, candidate=candidate)
    wanted = [alias.version_id, candidate.pk]
    now = release.made_at
    assert versions_aliased_since(version_ids=wanted, since=now) == set(wanted)
    abort_release(actor=make_actor(), release=release)
    assert versions_aliased_since(version_ids=wanted, since=now) == {alias.version_id}


# --- four eyes


def test_a_release_starts_with_the_approvals_that_its_plan_asks_for(alias: Alias, manager: Actor) -> None:
    release = begin_release(alias=alias, plan=NEEDS_TWO, actor=manager)
    for missing in ("2 people", "one more person"):
        with pytest.raises(ApprovalsMissing):
            start_release(actor=manager, release=release)
        with pytest.raises(ApprovalsMissing):
            promote_release(actor=manager, release=release)
        release.refresh_from_db()
        assert missing in release.sentence
        consent(release)
    release.refresh_from_db()
    assert "somebody to start it" in release.sentence
    assert start_release(actor=manager, release=release).state == ReleaseState.PREWARMING
    given = AuditRecord.objects.filter(action="tenant:release:approve").order_by("seq").values_list("after", flat=True)
    assert [(after["given"], after["required"]) for after in given if after] == [(1, 2), (2, 2)]


def test_an_approval_names_the_release_it_is_for_and_is_given_once(alias: Alias, manager: Actor) -> None:
    release = begin_release(alias=alias, plan=NEEDS_TWO, actor=manager)
    reviewer = make_member(alias.tenant, Role.REVIEWER)
    with pytest.raises(DigestChanged) as caught:
        approve_release(actor=reviewer, release=release, digest="0" * 64)
    assert caught.value.field == "digest"
    for _time in range(2):
        consent(release, actor=reviewer)
    assert release.approvals.count() == 1
    assert release.revision == 1


def test_nobody_approves_a_release_of_their_own(alias: Alias) -> None:
    both = make_member(alias.tenant, Role.RELEASE_MANAGER, Role.REVIEWER)
    release = begin_release(alias=alias, plan=NEEDS_TWO, actor=both)
    with pytest.raises(SelfApproval):
        consent(release, actor=both)


def test_only_a_person_makes_or_approves(alias: Alias, candidate: Version) -> None:
    with pytest.raises(PermissionDenied, match="person"):
        make(make_actor(), alias, candidate)
    with pytest.raises(PermissionDenied, match="person"):
        consent(begin_release(alias=alias, candidate=candidate), actor=make_actor())


def test_a_release_that_has_started_is_approved_no_more(alias: Alias, manager: Actor) -> None:
    release = start_release(actor=manager, release=begin_release(alias=alias, actor=manager))
    with pytest.raises(WrongReleaseState):
        consent(release)


# --- who


def test_an_outsider_makes_nothing(alias: Alias, candidate: Version) -> None:
    with pytest.raises(NotAMember):
        make(make_member(make_tenant(), *Role), alias, candidate)


@pytest.mark.parametrize("role", list(Role))
def test_release_managers_make_and_start_and_reviewers_approve_too(alias: Alias, role: Role) -> None:
    actor, candidate = make_member(alias.tenant, role), make_version(adapter=alias.adapter)
    release = begin_release(alias=alias, plan=NEEDS_TWO)
    consent(release)
    if role in {Role.REVIEWER, Role.RELEASE_MANAGER}:
        consent(release, actor=actor)
    else:
        with pytest.raises(PermissionDenied):
            consent(release, actor=actor)
        consent(release)
    if role is Role.RELEASE_MANAGER:
        start_release(actor=actor, release=release)
        return
    with pytest.raises(PermissionDenied):
        start_release(actor=actor, release=release)
    with pytest.raises(PermissionDenied):
        make(actor, alias, candidate)


def test_a_token_without_the_release_scope_makes_nothing(alias: Alias, candidate: Version) -> None:
    person = make_person(roles={alias.tenant: list(Role)})
    with pytest.raises(PermissionDenied, match="release"):
        make(make_actor(person, scopes=set(Scope) - {Scope.RELEASE}), alias, candidate)


def test_movers_of_a_protected_alias_alone_release_move_and_split_it(
    alias: Alias, candidate: Version, manager: Actor
) -> None:
    chosen = make_member(alias.tenant, Role.RELEASE_MANAGER)
    protect(alias, movers=[chosen.id], needs_release=False)
    wish = SplitWish(candidate=candidate)
    for act in (
        lambda: make(manager, alias, candidate),
        lambda: point_alias(name="support", version=candidate, actor=manager),
        lambda: set_split(actor=manager, alias=alias, wish=wish),
        lambda: clear_split(actor=manager, alias=alias),
    ):
        with pytest.raises(PermissionDenied, match=chosen.id):
            act()
    release = begin_release(alias=alias, candidate=candidate, actor=chosen)
    for verb in (start_release, promote_release):
        with pytest.raises(PermissionDenied):
            verb(actor=manager, release=release)
        verb(actor=chosen, release=release)


def test_where_a_release_is_needed_nobody_moves_or_splits_by_hand(
    alias: Alias, candidate: Version, manager: Actor
) -> None:
    protect(alias)
    with pytest.raises(ReleaseNeeded):
        point_alias(name="support", version=candidate, actor=manager)
    with pytest.raises(ReleaseNeeded):
        set_split(actor=manager, alias=alias, wish=SplitWish(candidate=candidate))
    promote_release(actor=manager, release=begin_release(alias=alias, candidate=candidate))
    alias.refresh_from_db()
    assert alias.version == candidate


def test_a_tenants_releases_are_its_own(alias: Alias, manager: Actor) -> None:
    release = begin_release(alias=alias)
    begin_release()
    reader = make_member(alias.tenant, Role.VIEWER)
    assert list(list_releases(actor=reader, tenant=alias.tenant.name)) == [release]
    assert get_release(actor=reader, tenant=alias.tenant.name, alias="support", number=1) == release
    with pytest.raises(NotFound) as caught:
        get_release(actor=reader, tenant=alias.tenant.name, alias="support", number=2)
    assert caught.value.field == "number"
    with pytest.raises(NotAMember):
        list_releases(actor=make_member(make_tenant(), *Role), tenant=alias.tenant.name)


def test_a_plan_is_kept_with_every_default(alias: Alias, candidate: Version, manager: Actor) -> None:
    release = make(manager, alias, candidate, plan_text=json.dumps(SHORT_PLAN))
    assert release.plan["keep_stable_warm_minutes"] == 60
    assert release.plan["canary"][0]["longest_minutes"] == 240
