"""Sessions of people, as far as their end: the rest is Django's and allauth's."""

from typing import Final

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone

_MAX_SWEPT: Final = 1000


@transaction.atomic
def forget_old_sessions() -> int:
    """The sweep: remove what has expired, also from the lists that people see of theirs; returns how many."""
    over = Session.objects.filter(expire_date__lt=timezone.now()).order_by("expire_date")
    keys = list(over.values_list("session_key", flat=True)[:_MAX_SWEPT])
    UserSession.objects.filter(session_key__in=keys).delete()
    return Session.objects.filter(session_key__in=keys, expire_date__lt=timezone.now()).delete()[0]
