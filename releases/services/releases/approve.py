"""Four eyes for releases: somebody else consents to start exactly this plan."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import DigestChanged, PermissionDenied, SelfApproval
from registry.permissions import Action, require_in_tenant
from releases import events
from releases.errors import WrongReleaseState
from releases.models import Release, ReleaseApproval
from releases.selectors import lock_release
from releases.services.releases.make import waits_for
from releases.states import ReleaseState
from releases.transitions import note_look


@transaction.atomic
def approve_release(*, actor: Actor, release: Release, digest: str, comment: str = "") -> Release:
    """Consent to start the release that ``digest`` names. Quiet when this person has consented already.

    Raises:
        SelfApproval: the actor made the release.
        PermissionDenied: the actor is no person, or may not approve.
        DigestChanged: the digest is another release's.
        WrongReleaseState: the release has started, or is over.

    """
    tenant_id = release.alias.tenant_id
    require_in_tenant(actor, Action.APPROVE_RELEASE, tenant_id)
    if actor.person_id is None:
        raise PermissionDenied(_("Only a person approves."), tenant_id=tenant_id)
    if actor.person_id == release.made_by_id:
        raise SelfApproval(_("You made this release: somebody else has to approve it."))
    locked = lock_release(release.pk)
    if digest != locked.digest:
        raise DigestChanged(
            _("The digest you approve is not this release's. Look at the release again."), field="digest"
        )
    if locked.approvals.filter(reviewer_id=actor.person_id).exists():
        return locked
    if locked.state != ReleaseState.PENDING:
        raise WrongReleaseState(
            _("%(release)s is %(state)s; only one that has not started can be approved.")
            % {"release": locked, "state": locked.state}
        )
    now = timezone.now()
    approval = ReleaseApproval.objects.create(
        release=locked, reviewer_id=actor.person_id, digest=digest, comment=comment, at=now
    )
    given, required = locked.approvals.count(), int(locked.plan["approvals"])
    note_look(locked, None, sentence=waits_for(given=given, required=required), looked_at=now)
    events.release_approved(actor=actor, release=locked, approval=approval, given=given, required=required)
    return locked
