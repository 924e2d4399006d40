"""The agent's Celery application: one queue, many commands in work, nothing that others on the broker could steer."""

import logging
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError

from workers.node.pool import CommandPool
from workers.node.settings import Settings

# A command whose agent was killed comes back after so long at the latest; it may also come back while it runs, and is
# dropped then. The longest that a command should take, a large download, is shorter.
VISIBILITY_S = 120
_MUTEX_S = 10
_MANY = 1000

_log = logging.getLogger(__name__)


def create_app(settings: Settings) -> Celery:
    """The application for this node; tasks are registered by the caller."""
    app = Celery(f"lorekeeper-{settings.queue}", broker=settings.broker_url, set_as_current=False)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_default_queue=settings.queue,
        task_create_missing_queues=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        # No limit: a worker that may take no more listens to no socket, so that it would not see its broker go, and the
        # command whose acknowledgement failed with it would count against the limit for ever.
        worker_prefetch_multiplier=0,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options=_transport_options(settings),
    )
    return app


def _transport_options(settings: Settings) -> dict[str, object]:
    """Over Redis, keys of our own: with shared ones each worker restores others' messages by its own time."""
    if not settings.broker_url.startswith(("redis://", "rediss://")):
        return {}
    return {
        "visibility_timeout": VISIBILITY_S,
        "unacked_key": f"{settings.queue}.unacked",
        "unacked_index_key": f"{settings.queue}.unacked_index",
        "unacked_mutex_key": f"{settings.queue}.unacked_mutex",
        "unacked_mutex_expire": _MUTEX_S,
    }


def reclaim_commands(app: Celery) -> None:
    """Put the commands that a killed predecessor had taken back into the queue now: nobody else can be working on them.

    Over other transports than Redis the broker does so by itself; with the broker away they come back by their time.
    """
    if not app.conf.broker_transport_options:
        return
    try:
        with app.connection_for_read(transport_options={"visibility_timeout": 0}) as connection:
            channel: Any = connection.default_channel
            channel.qos.restore_visible(num=_MANY)
    except OperationalError as error:
        _log.warning("the broker does not answer yet: %s", error)


def run_worker(app: Celery, settings: Settings) -> int:
    """Consume the node's queue until a signal; the exit status."""
    worker = app.Worker(
        hostname=f"{settings.queue}@agent",
        pool=CommandPool,
        concurrency=settings.commands,
        queues=[settings.queue],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel="INFO",
    )
    worker.start()
    return int(worker.exitcode or 0)
