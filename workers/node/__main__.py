"""`python -m workers.node`: the agent of one serving node, until SIGTERM or SIGINT."""

import logging
import os
import sys
from threading import Event, Thread

from workers.node.agent import Agent, build_agent, lock_cache
from workers.node.app import create_app, reclaim_commands, run_worker
from workers.node.errors import SettingError
from workers.node.heartbeat import Heartbeat
from workers.node.settings import Settings
from workers.node.tasks import register_tasks

_log = logging.getLogger("workers.node")
_FAREWELL_S = 15.0


def main() -> int:
    """Run; 2 when a setting is wrong."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        settings = Settings.from_env(os.environ)
        with lock_cache(settings.cache):
            return _run(settings, build_agent(settings))
    except SettingError as error:
        _log.error("%s", error)
        return 2


def _run(settings: Settings, agent: Agent) -> int:
    app = create_app(settings)
    register_tasks(app, agent)
    stop = Event()
    threads = [
        Thread(target=agent.courier.run, args=(stop,), name="courier", daemon=True),
        Thread(
            target=Heartbeat(agent).run,
            args=(stop,),
            kwargs={"interval_s": settings.heartbeat_s},
            name="heartbeat",
            daemon=True,
        ),
    ]
    for thread in threads:
        thread.start()
    try:
        reclaim_commands(app)
        return run_worker(app, settings)
    finally:
        agent.courier.stop(stop)
        for thread in threads:
            thread.join(_FAREWELL_S)


if __name__ == "__main__":
    sys.exit(main())
