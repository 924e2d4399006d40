"""What the steps of one run of the demo share."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from deploy.demo.command_line import Answer, Lorekeeper
from deploy.demo.conversation import Application, Reply
from deploy.demo.materials import DEFAULT_CACHE
from deploy.demo.measure import Measurement
from deploy.demo.people import TENANT, Person
from deploy.demo.platform import Platform
from deploy.demo.show import Screen

ADAPTER = f"{TENANT}/support-tone"
ALIAS = f"{TENANT}/support"
ALIAS_NAME = "support"


class DemoFailedError(Exception):
    """Something is not as it should be; the message says what."""


@dataclass(slots=True)
class Run:
    """One run: where its data is, what it has started, and what it knows so far.

    `adapters` are the trained folders by voice, `versions` what was pushed of them (the version's document),
    `audit_before` the number of the last audit record before this run; `closing` ends what a step has started.
    """

    folder: Path
    screen: Screen
    closing: ExitStack
    cache: Path = DEFAULT_CACHE
    engine_venv: Path = Path(".venv-vllm")
    engine_python: Path | None = None
    adapters: dict[str, Path] = field(default_factory=dict)
    versions: dict[str, Answer] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    audit_before: int = 0
    _platform: Platform | None = None
    _application: Application | None = None

    @property
    def platform(self) -> Platform:
        """The running stack. Raises DemoFailedError before the step that starts it."""
        if self._platform is None:
            raise DemoFailedError("the stack is not running yet")
        return self._platform

    def has_platform(self, platform: Platform) -> None:
        """Take the running stack."""
        self._platform = platform

    @property
    def application(self) -> Application:
        """The application that asks the gateway. Raises DemoFailedError before the step that gives it a key."""
        if self._application is None:
            raise DemoFailedError("the application has no key yet")
        return self._application

    def has_application(self, application: Application) -> None:
        """Take the application; it is closed at the run's end."""
        self._application = self.closing.enter_context(application)

    def admin(self) -> Lorekeeper:
        """Return the command line of the platform admin."""
        return Lorekeeper(self.platform.web_url, self.platform.admin_token)

    def as_(self, person: Person) -> Lorekeeper:
        """Return the command line of a person."""
        return Lorekeeper(self.platform.web_url, self.tokens[person.name])

    def does(self, person: Person, *words: str) -> Answer:
        """Show and run a person's command. Raises CommandFailedError."""
        self.screen.command(person.name, words)
        return self.as_(person).run(*words)

    def measured(self, *measurements: Measurement) -> None:
        """Show and remember numbers."""
        self.measurements.extend(measurements)
        self.screen.measured(*measurements)

    def asks(self, question: str, *, expect_voice: str) -> Reply:
        """Ask the alias, show the answer, and check its voice. Raises DemoFailedError if it is another."""
        reply = self.application.ask(ALIAS_NAME, question)
        self.screen.said(question, reply.voice, reply.text)
        if reply.voice != expect_voice:
            raise DemoFailedError(f"the answer should be {expect_voice}, but is {reply.voice}")
        return reply


def reference(version: Answer) -> str:
    """Return `tenant/adapter@version` of a version's document."""
    return f"{version['tenant']}/{version['adapter']}@{version['name']}"
