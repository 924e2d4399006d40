"""A tenant's approval policy: who decides on its versions, and how many of them it takes."""

from collections.abc import Iterable
from typing import Any, Final

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor
from registry.errors import InvalidInput, PreconditionFailed
from registry.models import ApprovalPolicy, Membership, Tenant
from registry.permissions import Action, require_in_tenant
from registry.quorum import APPROVER_ROLES
from registry.reviews import lock_policy
from registry.states import Role

MAX_REQUIRED: Final = 20
MAX_DAYS: Final = 3650


@transaction.atomic
def set_approval_policy(
    *,
    actor: Actor,
    tenant: Tenant,
    required: int,
    roles: Iterable[Role],
    only_people: Iterable[str] = (),
    required_people: Iterable[str] = (),
    validity_days: int | None = None,
    expected: ApprovalPolicy | None = None,
) -> ApprovalPolicy:
    """Replace the policy; see ``ApprovalPolicy`` for what the fields mean. Quiet when it says that already.

    It holds from now on for every candidate. A candidate that has enough approvals by a laxer policy is approved when
    one of those who may approves it (again); versions that are approved stay so.

    Raises:
        InvalidInput: names the field; for people also when they are not members with a role that may approve.
        PreconditionFailed: the policy is not what ``expected`` says any more.

    """
    require_in_tenant(actor, Action.MANAGE_TENANT, tenant.pk)
    policy = lock_policy(tenant)
    before = _shown(policy)
    policy.required = required
    policy.roles = sorted(role.value for role in set(roles))
    policy.only_people = sorted({email.lower() for email in only_people})
    policy.required_people = sorted({email.lower() for email in required_people})
    policy.validity_days = validity_days
    if _shown(policy) == before:
        return policy
    if expected is not None and before != _shown(expected):
        raise PreconditionFailed(_("The policy was changed meanwhile. Read it again and repeat your change."))
    _check(policy)
    policy.updated_at = timezone.now()
    policy.save(update_fields=[*_shown(policy), "updated_at"])
    events.approval_policy_set(actor=actor, tenant=tenant, before=before, after=_shown(policy))
    return policy


def _check(policy: ApprovalPolicy) -> None:
    _check_numbers(policy)
    _check_roles(policy)
    for field in ("only_people", "required_people"):
        _check_members(policy, field)
    if policy.only_people and not set(policy.required_people) <= set(policy.only_people):
        raise InvalidInput(
            _("Everybody in required_people has to be in only_people, too, unless that is empty."),
            field="required_people",
        )
    if policy.only_people and policy.required > len(policy.only_people):
        raise InvalidInput(
            _("%(required)d approvals are required, and only_people names %(people)d.")
            % {"required": policy.required, "people": len(policy.only_people)},
            field="required",
        )


def _check_numbers(policy: ApprovalPolicy) -> None:
    if not 1 <= policy.required <= MAX_REQUIRED:
        raise InvalidInput(_("Between 1 and %(most)d approvals.") % {"most": MAX_REQUIRED}, field="required")
    if policy.validity_days is not None and not 1 <= policy.validity_days <= MAX_DAYS:
        raise InvalidInput(_("Between 1 and %(most)d days.") % {"most": MAX_DAYS}, field="validity_days")


def _check_roles(policy: ApprovalPolicy) -> None:
    known = {role.value for role in APPROVER_ROLES}
    if not policy.roles or not set(policy.roles) <= known:
        raise InvalidInput(
            _("Those who approve have one of these roles: %(roles)s.") % {"roles": ", ".join(sorted(known))},
            field="roles",
        )


def _check_members(policy: ApprovalPolicy, field: str) -> None:
    named = set(getattr(policy, field))
    able = Membership.objects.filter(tenant=policy.tenant, role__in=policy.roles, person__email__in=named)
    missing = named - set(able.values_list("person__email", flat=True))
    if missing:
        raise InvalidInput(
            _("Not a member with a role that may approve: %(people)s.") % {"people": ", ".join(sorted(missing))},
            field=field,
        )


def _shown(policy: ApprovalPolicy) -> dict[str, Any]:
    return {
        "required": policy.required,
        "roles": list(policy.roles),
        "only_people": list(policy.only_people),
        "required_people": list(policy.required_people),
        "validity_days": policy.validity_days,
    }
