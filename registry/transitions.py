"""The one writer of the states of versions and of deliveries."""

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from registry.errors import IllegalTransition, StaleState
from registry.models import Version, WebhookDelivery
from registry.states import DELIVERY_MOVES, VERSION_MOVES, DeliveryState, VersionState


def move_version(version: Version, *, was: VersionState, to: VersionState, message: str = "", **facts: Any) -> None:  # noqa: ANN401
    """Move ``version`` from ``was`` to ``to`` by compare-and-set, and set ``facts`` (field values) with it.

    Raises:
        IllegalTransition: the move is not in the table; never worth a retry.
        StaleState: somebody else moved it first.

    """
    if (was, to) not in VERSION_MOVES:
        raise IllegalTransition(_("A version does not move from %(was)s to %(to)s.") % {"was": was, "to": to})
    changes = {"state": to.value, "state_changed_at": timezone.now(), "state_message": message, **facts}
    if not Version.objects.filter(pk=version.pk, state=was.value).update(**changes):
        raise StaleState(_("%(version)s was changed by somebody else meanwhile.") % {"version": version})
    for name, value in changes.items():
        setattr(version, name, value)


def move_delivery(delivery: WebhookDelivery, *, was: DeliveryState, to: DeliveryState, **facts: Any) -> None:  # noqa: ANN401
    """Bring a delivery to its end by compare-and-set, and set ``facts`` (field values) with it.

    Raises:
        IllegalTransition: the move is not in the table; never worth a retry.
        StaleState: it has come to an end already.

    """
    if (was, to) not in DELIVERY_MOVES:
        raise IllegalTransition(_("A delivery does not move from %(was)s to %(to)s.") % {"was": was, "to": to})
    changes = {"state": to.value, **facts}
    if not WebhookDelivery.objects.filter(pk=delivery.pk, state=was.value).update(**changes):
        raise StaleState(_("%(delivery)s was changed by somebody else meanwhile.") % {"delivery": delivery})
    for name, value in changes.items():
        setattr(delivery, name, value)
