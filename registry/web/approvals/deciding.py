"""Which ways of deciding on a candidate are open to a reader, and why not the others. The services ask again."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.models import Version
from registry.permissions import Action, allows_in_tenant
from registry.quorum import is_approver
from registry.reviews import policy_read_with, rules_of
from registry.states import VersionState


@dataclass(frozen=True, slots=True)
class Ways:
    """What a page offers.

    Attributes:
        decides: approve and decline.
        breaks_glass: approve alone, against the policy.
        reason: why the reader can't approve and decline; empty if they can, or if nothing waits.

    """

    decides: bool
    breaks_glass: bool
    reason: str


def ways_to_decide(actor: Actor, version: Version) -> Ways:
    """For a version that was read along with its tenant's policy."""
    if version.state != VersionState.CANDIDATE or version.purged_at is not None:
        return Ways(decides=False, breaks_glass=False, reason="")
    if actor.person_id == version.uploader_id:
        return Ways(False, False, _("You uploaded this version: somebody else has to decide on it."))
    tenant = version.adapter.tenant
    rules = rules_of(policy_read_with(tenant))
    breaks_glass = allows_in_tenant(actor, Action.BREAK_GLASS, tenant.pk)
    if not allows_in_tenant(actor, Action.APPROVE_VERSION, tenant.pk, roles=rules.roles):
        roles = ", ".join(sorted(role.value for role in rules.roles))
        reason = _("The approval policy of this tenant asks for one of these roles: %(roles)s.") % {"roles": roles}
        return Ways(False, breaks_glass, reason)
    if not is_approver(rules, person=actor.id, roles=actor.roles.get(tenant.pk, frozenset())):
        people = ", ".join(sorted(rules.only_people))
        return Ways(
            False,
            breaks_glass,
            _("The approval policy of this tenant names who decides: %(people)s.") % {"people": people},
        )
    return Ways(True, breaks_glass, "")
