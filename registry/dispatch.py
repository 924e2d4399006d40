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
SERVE_LOAD_QUEUE = "workers.tasks.serve_load_queue"
REPLAN_POOL = "workers.tasks.replan_pool"
STEER_RELEASE = "workers.tasks.steer_release"
DELIVER_WEBHOOKS = "workers.tasks.deliver_webhooks"
CHECK_AUDIT = "workers.tasks.check_audit"

_QUEUES = {
    VALIDATE_VERSION: "validate",
    REVALIDATE_VERSION: "validate",
    PURGE_VERSION: "control",
    RECONCILE_VERSION: "control",
    SERVE_LOAD_QUEUE: "control",
    REPLAN_POOL: "control",
    STEER_RELEASE: "control",
    DELIVER_WEBHOOKS: "webhooks",
    CHECK_AUDIT: "control",
}

_sender = Celery("lorekeeper-sender", broker=settings.BROKER_URL, set_as_current=False)
_sender.conf.update(
    # Whoever waits for an answer doesn't wait for a broker that is away: one more try, and the sweep does the rest.
    broker_transport_options={
        "socket_timeout": 5,
        "socket_connect_timeout": 2,
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0,
    },
    broker_connection_timeout=2,
    task_ignore_result=True,
)


def nudge(task: str, *, after_s: float = 0.0, **kwargs: str | int) -> None:
    """Send ``task`` once the current transaction has committed; it begins ``after_s`` seconds later."""
    transaction.on_commit(lambda: _send(task, _QUEUES[task], kwargs, after_s), robust=True)


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


def _send(task: str, queue: str, kwargs: dict[str, str | int], after_s: float) -> None:
    try:
        _sender.send_task(task, kwargs=kwargs, queue=queue, countdown=after_s or None, retry=False)
    except OperationalError as error:
        logger.warning("nudge %s was not sent, the sweep will do it: %s", task, error)
