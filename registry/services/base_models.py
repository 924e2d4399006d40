from django.db import transaction
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor
from registry.base_models.description import BaseDescription
from registry.errors import Conflict
from registry.models import BaseModel, BaseModelRevision
from registry.naming import check_base_model_name, check_version_name
from registry.permissions import Action, require_on_platform


@transaction.atomic
def register_base_revision(
    *, actor: Actor, name: str, label: str, description: BaseDescription, max_rank: int
) -> BaseModelRevision:
    """Pin a revision under a label; the same label with the same content is the same revision.

    Raises:
        Conflict: the label stands for other content; versions were checked against what it meant.

    """
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    model, _made = BaseModel.objects.get_or_create(name=check_base_model_name(name, field="name"))
    revision, created = BaseModelRevision.objects.select_related("base_model").get_or_create(
        base_model=model,
        label=check_version_name(label, field="revision"),
        defaults={"digest": description.digest, "description": description.to_json(), "max_rank": max_rank},
    )
    if created:
        events.base_revision_registered(actor=actor, revision=revision)
    elif (revision.digest, revision.max_rank) != (description.digest, max_rank):
        raise Conflict(
            _("Revision %(revision)s is already registered with other content. Choose a new label.")
            % {"revision": revision},
            field="revision",
        )
    return revision
