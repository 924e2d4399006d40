"""`python -m deploy.demo [--keep]`: the whole path on real components, step by step.

Ends with `demo: ok` and exit code 0, or with `demo: failed at step N: …` and exit code 1; 130 after Ctrl-C. Nothing is
left running. Data, logs and tokens stay in `.lorekeeper-demo`, the base model and the trained adapters in
`.lorekeeper-cache`, so that a second run is fast.
"""

import argparse
import os
import signal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from deploy.demo.people import APPLICATION, PEOPLE
from deploy.demo.platform import ADMIN_EMAIL
from deploy.demo.run import Run
from deploy.demo.show import Screen
from deploy.demo.steps import STAYING, STEPS, run_steps

EXIT_FAILED = 1
EXIT_STOPPED = 130


def main() -> int:
    """Run the demo and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deploy.demo", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--keep", action="store_true", help="leave it running at the end, until Ctrl-C")
    parser.add_argument("--data", type=Path, default=Path(".lorekeeper-demo"), help="folder of the stack's data")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    # Everything here is on the loopback interface; a proxy for the outside must not get to see it.
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"
    screen = Screen()
    try:
        with ExitStack() as closing:
            failure = _run(Run(options.data, screen, closing), keep=options.keep)
    except KeyboardInterrupt:
        screen.line("demo: stopped")
        return EXIT_STOPPED
    screen.line("demo: ok" if failure is None else f"demo: failed at {failure}")
    return 0 if failure is None else EXIT_FAILED


def _run(run: Run, *, keep: bool) -> str | None:
    failure = run_steps(run, (*STEPS, *STAYING) if keep else STEPS)
    if failure is None:
        run.screen.summary(run.measurements)
        if keep:
            _print_log_ins(run)
            _wait_for_ctrl_c(run.screen)
    return failure


def _print_log_ins(run: Run) -> None:
    """Print where everything is and with which tokens to come in."""
    run.screen.line()
    run.screen.line(f"web      {run.platform.web_url}/ui/")
    run.screen.line(f"gateway  {run.platform.gateway_url}/v1   (OPENAI_BASE_URL; model “support”)")
    run.screen.line(f"engine   {run.platform.engine_url}")
    run.screen.line(f"logs     {run.platform.log_folder}")
    run.screen.line("sign-in  (each link sets a password, once; then sign in with it and the e-mail address)")
    for email in (ADMIN_EMAIL, *(person.email for person in PEOPLE)):
        made = run.admin().run("member", "password-link", email)
        run.screen.line(f"  {email:<20}{made['url']}")
    run.screen.line("tokens   (LOREKEEPER_TOKEN, with LOREKEEPER_URL as above)")
    run.screen.line(f"  {'admin':<14}{run.platform.admin_token}")
    for person in PEOPLE:
        run.screen.line(f"  {person.name:<14}{run.tokens[person.name]}")
    run.screen.line(f"  {APPLICATION:<14}{run.tokens[APPLICATION]}   (OPENAI_API_KEY)")


def _wait_for_ctrl_c(screen: Screen) -> None:
    screen.line("\nIt goes on running. Ctrl-C stops everything.")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        screen.line("\nStopping.")


def _as_ctrl_c(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
