"""One function per audit event of releases. Tags read ``subject:object:action``.

Each is called by a service inside the transaction that makes the change.
"""

from typing import Any

from registry.actors import Actor
from registry.audit import append_record
from registry.models import Version
from releases.models import Alias, AliasGrant, AliasSplit, Release, ReleaseApproval, ReleaseStep, ReleaseTemplate
from releases.states import MoveKind, ReleaseState

_VERBS = {MoveKind.SET: "set", MoveKind.MOVE: "move", MoveKind.ROLLBACK: "roll_back"}


def alias_moved(*, actor: Actor, alias: Alias, previous: Version | None, reason: str) -> None:
    """An alias was made, moved or rolled back; it points to its new version already."""
    append_record(
        actor=actor,
        chain=alias.tenant.name,
        action=f"tenant:alias:{_VERBS[MoveKind(alias.moved_by)]}",
        object_={"kind": "alias", "id": str(alias.pk), "name": str(alias)},
        before=None if previous is None else _target(previous, alias.revision - 1),
        after=_target(alias.version, alias.revision),
        reason=reason,
    )


def split_set(*, actor: Actor, split: AliasSplit, before: dict[str, Any] | None, reason: str) -> None:
    """Requests of an alias are split between its version and a candidate from now on, or split otherwise."""
    append_record(
        actor=actor,
        chain=split.alias.tenant.name,
        action="tenant:alias:set_split",
        object_={"kind": "alias", "id": str(split.alias_id), "name": str(split.alias)},
        before=before,
        after=split_facts(split),
        reason=reason,
    )


def split_cleared(*, actor: Actor, alias: Alias, before: dict[str, Any], reason: str) -> None:
    """An alias's own version answers all its requests again."""
    append_record(
        actor=actor,
        chain=alias.tenant.name,
        action="tenant:alias:clear_split",
        object_={"kind": "alias", "id": str(alias.pk), "name": str(alias)},
        before=before,
        after=None,
        reason=reason,
    )


def template_written(*, actor: Actor, template: ReleaseTemplate, before: ReleaseTemplate | None) -> None:
    """A release template has a new edition, which releases are made from now on."""
    append_record(
        actor=actor,
        chain=template.tenant.name,
        action="tenant:release_template:write",
        object_={"kind": "release_template", "id": str(template.pk), "name": f"{template.tenant}/{template.name}"},
        before=None if before is None else {"number": before.number, "digest": before.digest},
        after={"number": template.number, "digest": template.digest, "document": template.document},
    )


def release_made(*, actor: Actor, release: Release) -> None:
    """Somebody made a release, which waits for its approvals."""
    _append_of_release(
        actor=actor,
        release=release,
        action="make",
        before=None,
        after={
            "state": release.state,
            "stable": _target(release.stable, release.stable_revision),
            "candidate": str(release.candidate),
            "candidate_id": str(release.candidate_id),
            "candidate_root_digest": release.candidate.root_digest,
            "digest": release.digest,
            "template": None if release.template is None else f"{release.template.name}#{release.template.number}",
            "plan": release.plan,
        },
        reason=release.reason,
    )


def release_approved(*, actor: Actor, release: Release, approval: ReleaseApproval, given: int, required: int) -> None:
    """Somebody consents to start a release with exactly that plan."""
    _append_of_release(
        actor=actor,
        release=release,
        action="approve",
        before=None,
        after={"digest": approval.digest, "given": given, "required": required},
        reason=approval.comment,
    )


def release_moved(
    *,
    actor: Actor,
    release: Release,
    action: str,
    was: ReleaseState,
    reason: str,
    step: ReleaseStep | None = None,
) -> None:
    """A release came to where it is now; with the step that began, passed or was tried again, if one did."""
    after: dict[str, Any] = {"state": release.state, "revision": release.revision, "candidate": str(release.candidate)}
    if release.pause_kind:
        after["pause_kind"] = release.pause_kind
    if release.sentence:
        after["sentence"] = release.sentence
    if step is not None:
        after["step"] = {"index": step.index, "kind": step.kind, "state": step.state, "attempt": step.attempt}
        after["verdict"] = step.verdict
    before = {"state": was.value, "revision": release.revision - 1}
    _append_of_release(actor=actor, release=release, action=action, before=before, after=after, reason=reason)


def alias_protected(*, actor: Actor, alias: Alias, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
    """Who may move an alias, and how, is another thing from now on; None: it isn't protected."""
    append_record(
        actor=actor,
        chain=alias.tenant.name,
        action="tenant:alias:unprotect" if after is None else "tenant:alias:protect",
        object_={"kind": "alias", "id": str(alias.pk), "name": str(alias)},
        before=before,
        after=after,
    )


def alias_granted(*, actor: Actor, grant: AliasGrant, reason: str) -> None:
    """Another tenant may call an alias from now on."""
    append_record(
        actor=actor,
        chain=grant.alias.tenant.name,
        action="tenant:alias:grant",
        object_={"kind": "alias", "id": str(grant.alias_id), "name": str(grant.alias)},
        after=_grant(grant),
        reason=reason,
    )


def grant_ended(*, actor: Actor, grant: AliasGrant, reason: str) -> None:
    """Another tenant may call an alias no more."""
    append_record(
        actor=actor,
        chain=grant.alias.tenant.name,
        action="tenant:alias:end_grant",
        object_={"kind": "alias", "id": str(grant.alias_id), "name": str(grant.alias)},
        before=_grant(grant),
        reason=reason,
    )


def split_facts(split: AliasSplit) -> dict[str, Any]:
    """A split as the audit log tells it."""
    return {
        "candidate": str(split.candidate),
        "candidate_id": str(split.candidate_id),
        "basis_points": split.basis_points,
        "salt": split.salt,
        "allow": list(split.allow),
        "deny": list(split.deny),
        "shadow": None if split.shadow is None else str(split.shadow),
        "shadow_id": None if split.shadow_id is None else str(split.shadow_id),
        "shadow_basis_points": split.shadow_basis_points,
    }


def _append_of_release(
    *,
    actor: Actor,
    release: Release,
    action: str,
    before: dict[str, Any] | None,
    after: dict[str, Any],
    reason: str,
) -> None:
    append_record(
        actor=actor,
        chain=release.alias.tenant.name,
        action=f"tenant:release:{action}",
        object_={"kind": "release", "id": str(release.pk), "name": f"{release.alias}#{release.number}"},
        before=before,
        after=after,
        reason=reason,
    )


def _target(version: Version, revision: int) -> dict[str, Any]:
    return {
        "version": str(version),
        "version_id": str(version.pk),
        "root_digest": version.root_digest,
        "revision": revision,
    }


def _grant(grant: AliasGrant) -> dict[str, Any]:
    return {"tenant": grant.tenant.name, "name": grant.name}
