"""How long the bytes of versions are kept. What would go is shown first; only what was shown is removed."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Count, Q, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor
from registry.errors import NotFound, PlanChanged, PolicyNotTried, PreconditionFailed
from registry.models import Adapter, RetentionPolicy, Version
from registry.permissions import Action, require_in_tenant
from registry.ports import PORTS
from registry.retention import Facts, Keep, keep_reason, plan_digest
from registry.selectors import versions_with_relations
from registry.services.purges import remove_bytes_of_purged, unneeded_artifacts
from registry.states import VersionState

logger = logging.getLogger(__name__)

# How often the sweep applies a policy, and how many versions at a time.
SWEEP_EVERY: Final = timedelta(hours=20)
MAX_PURGED: Final = 100
MAX_KEEP_DAYS: Final = 3650
_SET: Final = ("keep_days", "automatic", "applied_at", "updated_at")


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """One version with the reason why it is kept; None: its bytes go."""

    version: Version
    keep: Keep | None


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """What a policy means today. ``size`` is what would be freed, in bytes; ``digest`` names what goes."""

    keep_days: int
    entries: tuple[PlanEntry, ...]
    size: int
    digest: str

    @property
    def removed(self) -> tuple[Version, ...]:
        return tuple(entry.version for entry in self.entries if entry.keep is None)


@transaction.atomic
def set_retention(
    *, actor: Actor, adapter: Adapter, keep_days: int, automatic: bool, expected: RetentionPolicy | None = None
) -> RetentionPolicy:
    """Say how many days the bytes of versions are kept after they were last of use. Quiet when that is said already.

    Raises:
        PreconditionFailed: the policy is not what ``expected`` says any more.
        PolicyNotTried: ``automatic`` before ``keep_days`` was applied by hand.

    """
    require_in_tenant(actor, Action.MANAGE_TENANT, adapter.tenant_id)
    policy = _lock_policy(adapter)
    before = None if policy is None else _shown(policy)
    if expected is not None and before != _shown(expected):
        raise PreconditionFailed(_("The policy was changed meanwhile. Read it again and repeat your change."))
    policy = policy or RetentionPolicy(adapter=adapter, keep_days=keep_days)
    if policy.keep_days != keep_days:
        policy.keep_days, policy.applied_at = keep_days, None
    policy.automatic = automatic
    if before == _shown(policy):
        return policy
    if automatic and policy.applied_at is None:
        raise PolicyNotTried(
            _("Look at the plan for %(days)d days and apply it once by hand, before it is applied by itself.")
            % {"days": keep_days},
            field="automatic",
        )
    policy.updated_at = timezone.now()
    policy.save(update_fields=_SET if before is not None else None)
    events.retention_set(actor=actor, adapter=adapter, before=before, after=_shown(policy))
    return policy


def plan_retention(*, policy: RetentionPolicy) -> RetentionPlan:
    """What the policy would remove today and why it keeps the rest; removes nothing."""
    now = timezone.now()
    versions = list(versions_with_relations().filter(adapter=policy.adapter).order_by("created_at", "pk"))
    entries = tuple(
        PlanEntry(version, keep_reason(facts, keep=_keep(policy), now=now))
        for version, facts in zip(versions, _facts(versions, policy, now), strict=True)
    )
    going = [entry.version for entry in entries if entry.keep is None]
    stored = unneeded_artifacts(*going).filter(stored_at__isnull=False)
    return RetentionPlan(
        keep_days=policy.keep_days,
        entries=entries,
        size=stored.aggregate(size=Sum("size"))["size"] or 0,
        digest=plan_digest(version.pk for version in going),
    )


def apply_retention(*, actor: Actor, adapter: Adapter, digest: str) -> RetentionPlan:
    """Remove what the plan named by ``digest`` shows, version by version, and return that plan.

    Each version is looked at again under its lock: what came into use meanwhile is kept.

    Raises:
        NotFound: the adapter has no policy.
        PlanChanged: the plan is another one by now, and nothing was removed; or the policy was changed in the middle,
            and no more was removed.

    """
    require_in_tenant(actor, Action.MANAGE_TENANT, adapter.tenant_id)
    policy = RetentionPolicy.objects.select_related("adapter__tenant").filter(adapter=adapter).first()
    if policy is None:
        raise NotFound(_("%(adapter)s has no retention policy. Set one first.") % {"adapter": adapter})
    plan = plan_retention(policy=policy)
    if plan.digest != digest or not all(_purge(actor, policy, version) for version in plan.removed):
        raise PlanChanged(_("The plan is not the one you looked at. Look at it again."), field="digest")
    RetentionPolicy.objects.filter(pk=policy.pk, keep_days=policy.keep_days).update(applied_at=timezone.now())
    return plan


def due_retentions() -> list[int]:
    """Policies that are applied by themselves and have not been for about a day."""
    due = RetentionPolicy.objects.filter(automatic=True)
    due = due.filter(Q(swept_at__isnull=True) | Q(swept_at__lt=timezone.now() - SWEEP_EVERY))
    return list(due.order_by("pk").values_list("pk", flat=True))


def sweep_retention(*, actor: Actor, policy_id: int) -> None:
    """Apply one automatic policy; what is left over a bound is left to the next sweep."""
    policy = RetentionPolicy.objects.select_related("adapter__tenant").get(pk=policy_id)
    if not policy.automatic:
        return
    removed = plan_retention(policy=policy).removed
    if all(_purge(actor, policy, version) for version in removed[:MAX_PURGED]) and len(removed) <= MAX_PURGED:
        RetentionPolicy.objects.filter(pk=policy.pk).update(swept_at=timezone.now())


def _purge(actor: Actor, policy: RetentionPolicy, version: Version) -> bool:
    """Take a version out of use if nothing speaks for it, then remove its bytes; False if the policy has changed."""
    if not _still_says(policy, actor, version):
        return False
    remove_bytes_of_purged(version_id=version.pk)
    return True


@transaction.atomic
def _still_says(policy: RetentionPolicy, actor: Actor, version: Version) -> bool:
    now, said = timezone.now(), (policy.keep_days, policy.automatic)
    held = RetentionPolicy.objects.select_for_update(of=("self",), no_key=True).get(pk=policy.pk)
    if (held.keep_days, held.automatic) != said:
        return False
    locked = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version.pk)
    (facts,) = _facts([locked], policy, now)
    if keep_reason(facts, keep=_keep(policy), now=now) is None:
        _take_out_of_use(actor, policy, locked, now)
    return True


def _take_out_of_use(actor: Actor, policy: RetentionPolicy, version: Version, now: datetime) -> None:
    going = unneeded_artifacts(version).filter(stored_at__isnull=False).aggregate(files=Count("pk"), size=Sum("size"))
    Version.objects.filter(pk=version.pk).update(purged_at=now)
    events.version_purged(
        actor=actor,
        version=version,
        removed=going["files"],
        size=going["size"] or 0,
        reason=f"unused for {policy.keep_days} days",
    )


def _facts(versions: Iterable[Version], policy: RetentionPolicy, now: datetime) -> list[Facts]:
    listed = list(versions)
    aliased = PORTS.aliased_since(version_ids=[version.pk for version in listed], since=now - _keep(policy))
    rollback = PORTS.rollback_targets(adapter_id=policy.adapter_id)
    placed = PORTS.placed_versions(version_ids=[version.pk for version in listed])
    return [
        Facts(
            version_id=version.pk,
            state=VersionState(version.state),
            state_changed_at=version.state_changed_at,
            is_purged=version.purged_at is not None,
            is_aliased=version.pk in aliased,
            is_rollback_target=version.pk in rollback,
            is_on_nodes=version.pk in placed,
        )
        for version in listed
    ]


def _lock_policy(adapter: Adapter) -> RetentionPolicy | None:
    # The adapter's row is there to be locked when the policy is not yet.
    Adapter.objects.select_for_update(no_key=True).get(pk=adapter.pk)
    return RetentionPolicy.objects.filter(adapter=adapter).first()


def _keep(policy: RetentionPolicy) -> timedelta:
    return timedelta(days=policy.keep_days)


def _shown(policy: RetentionPolicy) -> dict[str, object]:
    return {"keep_days": policy.keep_days, "automatic": policy.automatic}
