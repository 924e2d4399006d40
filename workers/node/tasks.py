"""The commands of a node's queue."""

from celery import Celery

from workers.node.agent import Agent
from workers.node.commands import parse_evict, parse_fetch, parse_warm
from workers.node.errors import CommandError
from workers.node.jobs.evict import evict
from workers.node.jobs.fetch import fetch
from workers.node.jobs.warm import warm


def register_tasks(app: Celery, agent: Agent) -> None:
    """Give `app` the tasks `node.warm`, `node.fetch` and `node.evict`, which work with `agent`."""

    @app.task(name="node.warm", shared=False)
    def warm_version(*, command: object) -> None:
        try:
            warm(agent, parse_warm(command))
        except CommandError as error:
            agent.refuse(command, error)

    @app.task(name="node.fetch", shared=False)
    def fetch_version(*, command: object) -> None:
        try:
            fetch(agent, parse_fetch(command))
        except CommandError as error:
            agent.refuse(command, error)

    @app.task(name="node.evict", shared=False)
    def evict_version(*, command: object) -> None:
        try:
            evict(agent, parse_evict(command))
        except CommandError as error:
            agent.refuse(command, error)
