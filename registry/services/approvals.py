"""Four eyes: people other than the uploader approve what a version is, and with the last approval needed it is signed.

How many, and who, is the tenant's policy (``registry.quorum`` decides). Signing can be slow, so it happens before the
locks are taken; if the case is another one by then, everything is looked at again.
"""

import logging
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import dispatch, events
from registry.actors import Actor
from registry.errors import DigestChanged, InvalidInput, PermissionDenied, SelfApproval, StaleState, WrongState
from registry.models import Approval, Version
from registry.permissions import Action, require_in_tenant
from registry.ports import PORTS
from registry.quorum import Rules, Standing, Word, is_approver, judge, stands
from registry.reviews import case_of, lock_policy, policy_of, rules_of, subject_of
from registry.selectors import versions_with_relations
from registry.services.pipeline_signatures import require_pipeline_signature
from registry.services.review.sealing import Seal, fits, keep_seal, make_seal
from registry.states import Decision, VersionState
from registry.transitions import move_version

logger = logging.getLogger(__name__)

# Each look after the first follows on a change by somebody else, and few changes leave a candidate to look at.
_LOOKS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    """An approval that somebody gives, before it is written; ``digest`` and ``report`` are what they looked at."""

    actor: Actor
    digest: str
    report: str | None
    comment: str
    at: datetime
    break_glass: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    """What an offer would do: whether it is to be written, and how the case stands with it."""

    reviewer_id: int
    is_new: bool
    standing: Standing


def approve_version(
    *, actor: Actor, version: Version, digest: str, validation_digest: str | None = None, comment: str = ""
) -> Version:
    """Approve what is named by ``digest`` (its files) and ``validation_digest`` (its report; None: the present one).

    With the last approval that the tenant's policy asks for, the version is signed and becomes *approved*; before, it
    stays a candidate. Quiet when this reviewer has approved the same already, but for completing what is complete.

    Raises:
        SelfApproval: the actor uploaded the version.
        PermissionDenied: the policy does not let the actor approve.
        DigestChanged: the version has another digest or report by now.
        WrongState: the version is not a candidate.
        PipelineSignatureMissing: the tenant asks for it.

    """
    return _approve(
        version,
        _Offer(actor=actor, digest=digest, report=validation_digest, comment=comment, at=timezone.now()),
    )


def break_glass(
    *, actor: Actor, version: Version, digest: str, reason: str, validation_digest: str | None = None
) -> Version:
    """Approve alone, as a platform admin, against the policy. Validation and the pipeline's signature still hold.

    It takes a reason and is told on the tenant's chain, on the platform's chain and in the log. Raises like
    ``approve_version``.
    """
    if not reason.strip():
        raise InvalidInput(_("Breaking the glass takes a reason."), field="reason")
    approved = _approve(
        version,
        _Offer(
            actor=actor,
            digest=digest,
            report=validation_digest,
            comment=reason,
            at=timezone.now(),
            break_glass=True,
        ),
    )
    logger.warning("%s broke the glass: %s is approved without the approvals its policy asks for", actor.id, approved)
    return approved


@transaction.atomic
def decline_version(*, actor: Actor, version: Version, reason: str) -> Version:
    """Refuse a candidate for good. Quiet when this reviewer has refused it already.

    The uploader may not even decline: that would be deciding, too.
    """
    rules = rules_of(policy_of(version.adapter.tenant))
    reviewer_id = _require_reviewer(actor, version, rules)
    locked = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version.pk)
    if locked.state == VersionState.REJECTED and _has_said(locked, reviewer_id, Decision.DECLINED):
        return locked
    _require_candidate(locked)
    _write(locked, reviewer_id, Decision.DECLINED, comment=reason, at=timezone.now())
    move_version(locked, was=VersionState.CANDIDATE, to=VersionState.REJECTED, message=reason)
    events.version_moved(
        actor=actor,
        version=locked,
        action="decline",
        was=VersionState.CANDIDATE,
        to=VersionState.REJECTED,
        reason=reason,
    )
    dispatch.nudge(dispatch.PURGE_VERSION, version_id=str(locked.pk))
    return locked


def _approve(version: Version, offer: _Offer) -> Version:
    for _look in range(_LOOKS):
        seal = _sign_if_last(version.pk, offer)
        settled = _settle(version.pk, offer, seal)
        if settled is not None:
            return settled
    raise StaleState(_("%(version)s changes faster than it can be signed. Try again.") % {"version": version})


def _sign_if_last(version_id: UUID, offer: _Offer) -> Seal | None:
    """Look without a lock, and sign if the offer would complete the approvals."""
    version = versions_with_relations().get(pk=version_id)
    plan = _plan(version, offer, rules_of(policy_of(version.adapter.tenant)))
    return make_seal(version, plan.standing.counted) if plan is not None and plan.standing.met else None


@transaction.atomic
def _settle(version_id: UUID, offer: _Offer, seal: Seal | None) -> Version | None:
    """Write the offer and all that follows from it; None when the seal is not for the case as it is now."""
    tenant = versions_with_relations().get(pk=version_id).adapter.tenant
    rules = rules_of(lock_policy(tenant))
    version = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version_id)
    plan = _plan(version, offer, rules)
    if plan is None or not (plan.is_new or plan.standing.met):
        return version
    if plan.standing.met and (seal is None or not fits(seal, version, plan.standing.counted)):
        return None
    if plan.is_new:
        _keep_offer(version, offer, plan)
    if plan.standing.met and seal is not None:
        _complete(version, offer, plan.standing, seal)
    return version


def _plan(version: Version, offer: _Offer, rules: Rules) -> _Plan | None:
    """What the offer would do now; None if the version is approved and this reviewer has said so already."""
    reviewer_id = _require_giver(version, offer, rules)
    _require_digests(version, offer)
    if version.state == VersionState.APPROVED and _has_said(version, reviewer_id, Decision.APPROVED):
        return None
    _require_candidate(version)
    require_pipeline_signature(version)
    case = case_of(version)
    is_new = offer.break_glass or not stands(rules, case, person=offer.actor.id, now=offer.at)
    if is_new:
        case = replace(case, words=(*case.words, _word(version, offer)))
    return _Plan(reviewer_id=reviewer_id, is_new=is_new, standing=judge(rules, case, now=offer.at))


def _word(version: Version, offer: _Offer) -> Word:
    return Word(
        person=offer.actor.id,
        roles=offer.actor.roles.get(version.adapter.tenant_id, frozenset()),
        subject=subject_of(version),
        at=offer.at,
        comment=offer.comment,
        break_glass=offer.break_glass,
    )


def _keep_offer(version: Version, offer: _Offer, plan: _Plan) -> None:
    approval = _write(
        version,
        plan.reviewer_id,
        Decision.APPROVED,
        comment=offer.comment,
        at=offer.at,
        break_glass=offer.break_glass,
    )
    if not plan.standing.met:
        events.approval_given(
            actor=offer.actor,
            version=version,
            approval=approval,
            given=len(plan.standing.counted),
            required=plan.standing.required,
        )


def _complete(version: Version, offer: _Offer, standing: Standing, seal: Seal) -> None:
    keep_seal(actor=offer.actor, version=version, seal=seal)
    move_version(version, was=VersionState.CANDIDATE, to=VersionState.APPROVED)
    if offer.break_glass:
        # Before the tenant's record: whoever writes on both chains begins with the platform's.
        events.glass_broken(actor=offer.actor, version=version, reason=offer.comment)
    events.version_moved(
        actor=offer.actor,
        version=version,
        action="break_glass" if offer.break_glass else "approve",
        was=VersionState.CANDIDATE,
        to=VersionState.APPROVED,
        reason=offer.comment,
        facts={
            "root_digest": version.root_digest,
            "validation_digest": version.validation_digest,
            "base_digest": version.base_revision.digest,
            "key": seal.key.key_id,
            "approved_by": [word.person for word in standing.counted],
            "required": standing.required,
        },
    )
    PORTS.version_approved(actor=offer.actor, version_id=version.pk)


def _require_giver(version: Version, offer: _Offer, rules: Rules) -> int:
    if not offer.break_glass:
        return _require_reviewer(offer.actor, version, rules)
    require_in_tenant(offer.actor, Action.BREAK_GLASS, version.adapter.tenant_id)
    return _require_another_person(offer.actor, version)


def _require_reviewer(actor: Actor, version: Version, rules: Rules) -> int:
    tenant_id = version.adapter.tenant_id
    require_in_tenant(actor, Action.APPROVE_VERSION, tenant_id, roles=rules.roles)
    reviewer_id = _require_another_person(actor, version)
    if not is_approver(rules, person=actor.id, roles=actor.roles.get(tenant_id, frozenset())):
        raise PermissionDenied(
            _("The approval policy of this tenant names who approves, and you are not among them: %(people)s.")
            % {"people": ", ".join(sorted(rules.only_people))}
        )
    return reviewer_id


def _require_another_person(actor: Actor, version: Version) -> int:
    if actor.person_id is None:
        raise PermissionDenied(_("Only a person approves."))
    if actor.person_id == version.uploader_id:
        raise SelfApproval(_("You uploaded this version: somebody else has to approve it."))
    return actor.person_id


def _require_digests(version: Version, offer: _Offer) -> None:
    if offer.digest != version.root_digest:
        raise DigestChanged(
            _("The digest you approve is not this version's. Look at the version again."), field="digest"
        )
    if offer.report is not None and offer.report != version.validation_digest:
        raise DigestChanged(
            _("The report you looked at is not this version's any more. Look at the new one."),
            field="validation_digest",
        )


def _require_candidate(version: Version) -> None:
    if version.state != VersionState.CANDIDATE:
        raise WrongState(
            _("%(version)s is %(state)s; only a candidate can be decided on.")
            % {"version": version, "state": version.state}
        )
    if version.purged_at is not None:
        raise WrongState(_("The files of %(version)s were removed by retention.") % {"version": version})


def _has_said(version: Version, reviewer_id: int, decision: Decision) -> bool:
    return version.approvals.filter(
        reviewer_id=reviewer_id, decision=decision.value, validation_digest=version.validation_digest
    ).exists()


def _write(
    version: Version,
    reviewer_id: int,
    decision: Decision,
    *,
    comment: str,
    at: datetime,
    break_glass: bool = False,
) -> Approval:
    return Approval.objects.create(
        version=version,
        reviewer_id=reviewer_id,
        decision=decision.value,
        root_digest=version.root_digest,
        validation_digest=version.validation_digest,
        base_digest=version.base_revision.digest,
        break_glass=break_glass,
        comment=comment,
        created_at=at,
    )
