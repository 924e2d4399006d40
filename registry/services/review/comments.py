from django.db import transaction
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor
from registry.errors import PermissionDenied
from registry.models import Version, VersionComment
from registry.permissions import Action, require_in_tenant


@transaction.atomic
def write_comment(*, actor: Actor, version: Version, text: str) -> VersionComment:
    """Say something in the review of a version, in whatever state it is. It is kept for ever."""
    require_in_tenant(actor, Action.COMMENT_VERSION, version.adapter.tenant_id)
    if actor.person_id is None:
        raise PermissionDenied(_("Only a person comments."))
    comment = VersionComment.objects.create(version=version, author_id=actor.person_id, text=text)
    events.comment_written(actor=actor, comment=comment)
    return comment
