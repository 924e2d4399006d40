"""Reading what ``registry.quorum`` judges: a tenant's policy, and a version's case with all approvals it was given."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db.models import QuerySet
from django.utils import timezone

from registry.models import Approval, ApprovalPolicy, Person, Tenant, Version
from registry.quorum import Case, Rules, Standing, Subject, Void, Word, judge, void_reason
from registry.states import Decision, Role

# What ``review_of_listed`` needs, as ``prefetch_related`` takes it; the policy comes with the tenant.
REVIEWED_WITH: Final = "approvals__reviewer__memberships"
POLICY_OF_VERSION: Final = "adapter__tenant__approval_policy"


def policy_of(tenant: Tenant) -> ApprovalPolicy:
    """The tenant's policy, or the default one, which is in no table."""
    return ApprovalPolicy.objects.filter(tenant=tenant).first() or ApprovalPolicy(tenant=tenant)


def lock_policy(tenant: Tenant) -> ApprovalPolicy:
    """The tenant's policy, locked until the transaction ends.

    Approvals, and changes of what they have to fulfil (this policy, what pipelines have to sign), take turns by it.

    Lock it before the version.
    """
    # A row that is not there can't be locked.
    ApprovalPolicy.objects.bulk_create([ApprovalPolicy(tenant=tenant)], ignore_conflicts=True)
    return ApprovalPolicy.objects.select_for_update(of=("self",), no_key=True).get(tenant=tenant)


def rules_of(policy: ApprovalPolicy) -> Rules:
    days = policy.validity_days
    return Rules(
        required=policy.required,
        roles=frozenset(Role(role) for role in policy.roles),
        only_people=frozenset(policy.only_people),
        required_people=frozenset(policy.required_people),
        validity=None if days is None else timedelta(days=days),
    )


def subject_of(version: Version) -> Subject:
    return Subject(files=version.root_digest, report=version.validation_digest, base=version.base_revision.digest)


@dataclass(frozen=True, slots=True)
class Review:
    """Where the review of a version stands, with every approval and why it does not count (None: it does)."""

    policy: ApprovalPolicy
    standing: Standing
    approvals: tuple[tuple[Approval, Void | None], ...]


def review_of(version: Version) -> Review:
    """Where the review of a version stands now."""
    return _review(version, policy_of(version.adapter.tenant), _approvals_of(version))


def review_of_listed(version: Version) -> Review:
    """As ``review_of``, without a query, for a version that was read along with ``REVIEWED_WITH`` and its policy."""
    tenant = version.adapter.tenant
    return _review(version, policy_read_with(tenant), version.approvals.all())


def policy_read_with(tenant: Tenant) -> ApprovalPolicy:
    """As ``policy_of``, for a tenant that was read along with its policy."""
    policy: ApprovalPolicy | None = getattr(tenant, "approval_policy", None)
    return policy or ApprovalPolicy(tenant=tenant)


def case_of(version: Version) -> Case:
    """The case of a version that was read with its relations."""
    return _case(version, _approved(_approvals_of(version)))


def _review(version: Version, policy: ApprovalPolicy, given: Iterable[Approval]) -> Review:
    approvals, rules, now = _approved(given), rules_of(policy), timezone.now()
    case = _case(version, approvals)
    voids = (void_reason(rules, case, word, now=now) for word in case.words)
    return Review(
        policy=policy, standing=judge(rules, case, now=now), approvals=tuple(zip(approvals, voids, strict=True))
    )


def _case(version: Version, approvals: Iterable[Approval]) -> Case:
    return Case(
        subject=subject_of(version),
        uploader=version.uploader.email,
        words=tuple(
            Word(
                person=approval.reviewer.email,
                roles=_roles_now(approval.reviewer, version.adapter.tenant_id),
                subject=Subject(approval.root_digest, approval.validation_digest, approval.base_digest),
                at=approval.created_at,
                comment=approval.comment,
                break_glass=approval.break_glass,
            )
            for approval in approvals
        ),
    )


def _approvals_of(version: Version) -> QuerySet[Approval]:
    return version.approvals.select_related("reviewer").prefetch_related("reviewer__memberships")


def _approved(given: Iterable[Approval]) -> list[Approval]:
    return [each for each in given if each.decision == Decision.APPROVED]


def _roles_now(person: Person, tenant_id: int) -> frozenset[Role]:
    """The roles that the person has in the tenant, if active."""
    held = person.memberships.all() if person.is_active else ()
    return frozenset(Role(membership.role) for membership in held if membership.tenant_id == tenant_id)
