"""`python -m workers.node`: the agent of one serving node, until SIGTERM or SIGINT."""

import logging
import os
import sys
from functools import partial
from threading import Event, Thread

from workers.exposition import serve
from workers.node.agent import Agent, build_agent, lock_cache
from workers.node.app import create_app, reclaim_commands, run_worker
from workers.node.disk.scrub import Scrub
from workers.node.errors import SettingError
from workers.node.health.check import Health
from workers.node.heartbeat import Heartbeat
from workers.node.metrics.page import make_registry
from workers.node.settings import Settings
from workers.node.tasks import register_tasks

_log = logging.getLogger("workers.node")
_FAREWELL_S = 15.0
_OTHERS_WRITE = 0o022


def main() -> int:
    """Run; 2 when a setting is wrong."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    # Nobody else may change what lies between the check of a version and the engine that reads it.
    os.umask(os.umask(0) | _OTHERS_WRITE)
    try:
        settings = Settings.from_env(os.environ)
        with lock_cache(settings.cache):
            return _run(settings, build_agent(settings))
    except SettingError as error:
        _log.error("%s", error)
        return 2


def _run(settings: Settings, agent: Agent) -> int:
    _answer_metrics(settings, agent)
    app = create_app(settings)
    register_tasks(app, agent)
    stop = Event()
    threads = _threads(settings, agent, stop)
    for thread in threads:
        thread.start()
    try:
        reclaim_commands(app)
        return run_worker(app, settings)
    finally:
        agent.courier.stop(stop)
        for thread in threads:
            thread.join(_FAREWELL_S)


def _answer_metrics(settings: Settings, agent: Agent) -> None:
    if settings.metrics is None:
        return
    try:
        serve(settings.metrics, make_registry(agent, settings))
    except OSError as error:
        raise SettingError(f"LOREKEEPER_NODE_METRICS can't be listened on: {error}") from error


def _threads(settings: Settings, agent: Agent, stop: Event) -> list[Thread]:
    """What goes on beside the commands."""
    works = {
        "courier": partial(agent.courier.run, stop),
        "heartbeat": partial(Heartbeat(agent).run, stop, interval_s=settings.heartbeat_s),
        "scrub": partial(Scrub(agent, wait=stop.wait, pause_s=settings.scrub_s).run),
    }
    if settings.health_s:
        works["health"] = partial(Health(agent).run, stop, interval_s=settings.health_s)
    return [Thread(target=work, name=name, daemon=True) for name, work in works.items()]


if __name__ == "__main__":
    sys.exit(main())
