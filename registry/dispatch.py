"""Nudges: tasks sent by name, after commit. A lost nudge is repaired by the sweep that watches the same state."""

import logging
from typing import Any

from celery import Celery
from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _
from kombu.exceptions import OperationalError

from registry.errors import RegistryError

logger = logging.getLogger(__name__)

VALIDATE_VERSION = "workers.tasks.validate_version"
REVALIDATE_VERSION = "workers.tasks.revalidate_version"
PURGE_VERSION = "workers.tasks.purge_version"
RECONCILE_VERSION = "workers.tasks.reconcile_version"

_QUEUES = {
    VALIDATE_VERSION: "validate",
    REVALIDATE_VERSION: "validate",
    PURGE_VERSION: "control",
    RECONCILE_VERSION: "control",
}

_sender = Celery("lorekeeper-sender", broker=settings.BROKER_URL, set_as_current=False)
_sender.conf.update(
    broker_transport_options={"socket_timeout": 5, "socket_connect_timeout": 2},
    broker_connection_timeout=2,
    task_ignore_result=True,
)


def nudge(task: str, **kwargs: str | int) -> None:
    """Send ``task`` once the current transaction has committed."""
    transaction.on_commit(lambda: _send(task, _QUEUES[task], kwargs), robust=True)


class BrokerAway(RegistryError):
    """The message broker does not answer."""

    code = "broker_away"
    retryable = True


def send_to_node(node: str, task: str, command: dict[str, Any]) -> None:
    """Put a command on a node's own queue. Raises ``BrokerAway``: the sweep sends again."""
    try:
        _sender.send_task(task, kwargs={"command": command}, queue=f"node.{node}", retry=False)
    except OperationalError as error:
        raise BrokerAway(_("The message broker does not answer.")) from error


def _send(task: str, queue: str, kwargs: dict[str, str | int]) -> None:
    try:
        _sender.send_task(task, kwargs=kwargs, queue=queue, retry=False)
    except OperationalError as error:
        logger.warning("nudge %s was not sent, the sweep will do it: %s", task, error)
