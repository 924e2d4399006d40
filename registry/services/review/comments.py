from django.db import transaction
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor
from registry.errors import PermissionDenied
from registry.models import Version, VersionComment
from registry.permissions import Action, require_in_tenant


@transaction.atomic
def write_comment(*, actor: Actor, version: Version, text: str) -> VersionComment:
    """Say something in the review of a version, in whatever state it is. It is kept for ever.

    Quiet when the same person has just said the same: a form that is sent twice says it once.
    """
    require_in_tenant(actor, Action.COMMENT_VERSION, version.adapter.tenant_id)
    if actor.person_id is None:
        raise PermissionDenied(_("Only a person comments."))
    # Comments of one version take turns.
    Version.objects.select_for_update(no_key=True).get(pk=version.pk)
    last = VersionComment.objects.filter(version=version).order_by("-created_at", "-pk").first()
    if last is not None and (last.author_id, last.text) == (actor.person_id, text):
        return last
    comment = VersionComment.objects.create(version=version, author_id=actor.person_id, text=text)
    events.comment_written(actor=actor, comment=comment)
    return comment
