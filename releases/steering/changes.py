"""What may be done next for a release."""

from dataclasses import dataclass

from releases.states import PauseKind


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin the next step, the one with this index: split the requests as it says."""

    index: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Pass:
    """The step that runs has passed; where it has a gate, the release then waits for a person."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Promote:
    """Every step has passed: move the alias."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A person has to decide; ``sentence`` says what about."""

    kind: PauseKind
    sentence: str


@dataclass(frozen=True, slots=True)
class RollBack:
    """The candidate does harm, or may not answer any more."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do now; ``sentence`` says what it waits for, and is empty where there is nothing new to say."""

    sentence: str = ""


Change = Begin | Pass | Promote | Pause | RollBack | Wait
