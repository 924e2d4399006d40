"""What the API answers: plain JSON documents made from models."""

from datetime import datetime
from typing import Any, Final

from django.db.models import Prefetch, prefetch_related_objects

from registry.models import Version
from registry.states import VersionState
from releases.models import (
    Alias,
    AliasGrant,
    AliasInterval,
    AliasProtection,
    AliasRevision,
    AliasSplit,
    Release,
    ReleaseStep,
    ReleaseTemplate,
    Rollback,
)

Document = dict[str, Any]

# A list reads no verdicts: they are most of a step.
SHOWN_WITH_RELEASE: Final = (
    "approvals__reviewer",
    Prefetch("steps", queryset=ReleaseStep.objects.defer("spec", "verdict", "course")),
)


def alias_document(alias: Alias) -> Document:
    return {
        "tenant": alias.tenant.name,
        "name": alias.name,
        "adapter": alias.adapter.name,
        "version": alias.version.name,
        "version_id": alias.version_id,
        "revision": alias.revision,
        "updated_at": alias.updated_at,
        "split": split_document(alias.split) if hasattr(alias, "split") else None,
        "protection": protection_document(alias.protection) if hasattr(alias, "protection") else None,
    }


def split_document(split: AliasSplit) -> Document:
    return {**_shares(split, split.candidate), "changed_at": split.changed_at}


def protection_document(protection: AliasProtection) -> Document:
    return {
        "movers": protection.movers,
        "needs_release": protection.needs_release,
        "changed_at": protection.changed_at,
    }


def grant_document(grant: AliasGrant) -> Document:
    """A grant as the alias's owner sees it."""
    return {"tenant": grant.tenant.name, "name": grant.name, "granted_at": grant.granted_at}


def shared_alias_document(grant: AliasGrant) -> Document:
    """A grant as the tenant that has it sees it."""
    return {"name": grant.name, "granted_at": grant.granted_at}


def interval_document(interval: AliasInterval) -> Document:
    candidate = interval.candidate
    return {
        "valid_from": interval.valid_from,
        "valid_to": interval.valid_to,
        "split": {**_shares(interval, candidate), "revoked_at": _revoked_at(candidate)} if candidate else None,
        "release": interval.release.number if interval.release else None,
    }


def _shares(split: AliasSplit | AliasInterval, candidate: Version) -> Document:
    return {
        "adapter": candidate.adapter.name,
        "version": candidate.name,
        "version_id": candidate.pk,
        "basis_points": split.basis_points,
        "salt": split.salt,
        "allow": split.allow,
        "deny": split.deny,
        "shadow_adapter": split.shadow.adapter.name if split.shadow else None,
        "shadow_version": split.shadow.name if split.shadow else None,
        "shadow_version_id": split.shadow_id,
        "shadow_basis_points": split.shadow_basis_points,
    }


def _revoked_at(version: Version) -> datetime | None:
    return version.state_changed_at if version.state == VersionState.REVOKED else None


def alias_revision_document(row: AliasRevision) -> Document:
    return {
        "revision": row.number,
        "adapter": row.version.adapter.name,
        "version": row.version.name,
        "previous_version": row.previous_version.name if row.previous_version else None,
        "kind": row.kind,
        "actor": {"kind": row.actor_kind, "id": row.actor_id, "name": row.actor_name},
        "reason": row.reason,
        "at": row.at,
        "revoked_at": _revoked_at(row.version),
        "intervals": [interval_document(interval) for interval in row.intervals.all()],
    }


def release_document(release: Release) -> Document:
    """A release as lists show it; ``SHOWN_WITH_RELEASE`` is read with it, unless it was already."""
    prefetch_related_objects([release], *SHOWN_WITH_RELEASE)
    kinds = [step.kind for step in release.steps.all()]
    return {
        "id": release.pk,
        "tenant": release.alias.tenant.name,
        "alias": release.alias.name,
        "number": release.number,
        "stable": _named(release.stable),
        "candidate": _named(release.candidate),
        "state": release.state,
        "pause_kind": release.pause_kind or None,
        "sentence": release.sentence,
        "step": release.step,
        "step_kind": kinds[min(release.step, len(kinds) - 1)],
        "steps": len(kinds),
        "revision": release.revision,
        "digest": release.digest,
        "template": {"name": release.template.name, "number": release.template.number} if release.template else None,
        "reason": release.reason,
        "approvals_needed": release.plan["approvals"],
        "approvals_given": len(release.approvals.all()),
        "made_by": release.made_by.email,
        "made_at": release.made_at,
        "started_at": release.started_at,
        "ended_at": release.ended_at,
        "looked_at": release.looked_at,
    }


def whole_release_document(release: Release) -> Document:
    prefetch_related_objects([release], "rollbacks__left__adapter", "rollbacks__alias__tenant", "rollbacks__release")
    approvals = sorted(release.approvals.all(), key=lambda approval: approval.at)
    rollbacks = sorted(release.rollbacks.all(), key=lambda rollback: rollback.asked_at)
    return {
        **release_document(release),
        "plan": release.plan,
        "approvals": [
            {
                "reviewer": approval.reviewer.email,
                "digest": approval.digest,
                "comment": approval.comment,
                "at": approval.at,
            }
            for approval in approvals
        ],
        "rollbacks": [rollback_document(rollback) for rollback in rollbacks],
    }


def step_document(step: ReleaseStep) -> Document:
    return {
        "index": step.index,
        "kind": step.kind,
        "state": step.state,
        "spec": step.spec,
        "attempt": step.attempt,
        "started_at": step.started_at,
        "ended_at": step.ended_at,
        "sentence": step.sentence,
        "verdict": step.verdict,
        "judged_at": step.judged_at,
    }


def rollback_document(rollback: Rollback) -> Document:
    asked, last = rollback.asked_at, rollback.last_answer_at
    return {
        "tenant": rollback.alias.tenant.name,
        "alias": rollback.alias.name,
        "release": rollback.release.number if rollback.release else None,
        "revision": rollback.revision,
        "left": _named(rollback.left),
        "asked_at": asked,
        "committed_at": rollback.committed_at,
        "commit_ms": _ms(asked, rollback.committed_at),
        "last_answer_at": last,
        "last_answer_ms": None if last is None else _ms(asked, last),
        "strays": rollback.strays,
        "settled_at": rollback.settled_at,
    }


def template_document(template: ReleaseTemplate) -> Document:
    return {
        "tenant": template.tenant.name,
        "name": template.name,
        "number": template.number,
        "digest": template.digest,
        "written_by": template.written_by.email if template.written_by_id else None,
        "written_at": template.written_at,
    }


def whole_template_document(template: ReleaseTemplate) -> Document:
    return {**template_document(template), "text": template.text, "document": template.document}


def _named(version: Version) -> Document:
    return {"adapter": version.adapter.name, "version": version.name, "version_id": version.pk}


def _ms(since: datetime, until: datetime) -> float:
    """Gateways have clocks of their own: what ended before the request by theirs ended at once."""
    return max(0.0, round((until - since).total_seconds() * 1000, 3))
