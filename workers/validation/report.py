"""What a validation says: checks with verdicts and sentences, facts read from the weights, and a digest of it."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final

import rfc8785

POLICY_VERSION: Final = "3"
NOT_CHECKED: Final = "not_checked"
MAX_EXAMPLES: Final = 5
_MAX_TEXT: Final = 200
_MAX_EXACT: Final = 1 << 53

JsonValue = None | bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"]


class Verdict(StrEnum):
    """What one check found."""

    PASS = "pass"  # noqa: S105 - a verdict, no secret
    WARN = "warn"
    FAIL = "fail"


class Outcome(StrEnum):
    """What the whole report comes to: one failed check rejects, one warning warns."""

    ACCEPT = "accept"
    WARN = "warn"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding of one check.

    Args:
        name: the check that found it; one check may find several things.
        verdict: whether this finding refuses the upload.
        code: one stable word for programs, unique within the check.
        message: a sentence for people: which file, tensor or module, what is wrong, what to do.
        evidence: the numbers and names behind the sentence, as JSON values.
        measured: what was measured on this machine just now, such as times; another run measures otherwise, so that the
            digest of the report doesn't cover it.

    """

    name: str
    verdict: Verdict
    code: str
    message: str
    evidence: Mapping[str, JsonValue] = field(default_factory=dict)
    measured: Mapping[str, JsonValue] = field(default_factory=dict)

    def to_json(self) -> dict[str, JsonValue]:
        """The finding as JSON values, without what was measured."""
        return {
            "name": self.name,
            "verdict": self.verdict.value,
            "code": self.code,
            "message": self.message,
            "evidence": self.evidence,
        }


@dataclass(frozen=True, slots=True)
class FileFact:
    """A file that was checked: sizes in bytes, digest in hex."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What the files say of the adapter; None or empty where they don't say it.

    Args:
        rank: the largest true rank, read from the tensors.
        declared_rank: `r` of adapter_config.json.
        alpha: `lora_alpha` of adapter_config.json.
        target_modules: last names of the modules that have weights, sorted.
        module_count: how many modules have weights.
        dtype: element type of the weights; several are joined by '+'.
        parameters: number of elements in all tensors.
        base_model: `base_model_name_or_path` of adapter_config.json.
        files: the files that make the adapter, sorted by path; only these may be kept.
        unused_files: what lay in the folder besides, sorted; never to be kept.
        engines: keys of the engines that can serve the adapter as trained: vllm, tgi, sglang, lorax.
        slot_bytes: what one slot for it takes on each engine, in bytes.

    """

    rank: int | None = None
    declared_rank: int | None = None
    alpha: float | None = None
    target_modules: tuple[str, ...] = ()
    module_count: int = 0
    dtype: str | None = None
    parameters: int = 0
    base_model: str | None = None
    files: tuple[FileFact, ...] = ()
    unused_files: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    slot_bytes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `check_folder`: every finding in the order of the checks, and the facts."""

    checks: tuple[Check, ...]
    facts: Facts
    policy_version: str = POLICY_VERSION

    @property
    def verdict(self) -> Outcome:
        """Reject if any check failed, warn if any warned, else accept."""
        found = {check.verdict for check in self.checks}
        if Verdict.FAIL in found:
            return Outcome.REJECT
        return Outcome.WARN if Verdict.WARN in found else Outcome.ACCEPT

    @property
    def reasons(self) -> tuple[str, ...]:
        """The sentences of failed checks, then of warnings, each in the order of the checks."""
        failed = [check.message for check in self.checks if check.verdict is Verdict.FAIL]
        warned = (check for check in self.checks if check.verdict is Verdict.WARN and check.code != NOT_CHECKED)
        return (*failed, *(check.message for check in warned))

    @property
    def digest(self) -> str:
        """SHA-256 in hex over the RFC 8785 form of the report without its digest and what was measured."""
        return hashlib.sha256(rfc8785.dumps(self._content())).hexdigest()

    def to_json(self) -> dict[str, JsonValue]:
        """The whole report as JSON values, with its digest and, in each check that has it, what was measured."""
        measured = [{"measured": check.measured} if check.measured else {} for check in self.checks]
        checks = [{**check.to_json(), **extra} for check, extra in zip(self.checks, measured, strict=True)]
        return {**self._content(), "checks": checks, "digest": self.digest}

    def _content(self) -> dict[str, JsonValue]:
        return {
            "policy_version": self.policy_version,
            "verdict": self.verdict.value,
            "checks": [check.to_json() for check in self.checks],
            "facts": asdict(self.facts),
        }


@dataclass(slots=True)
class Grouping:
    """Many tensors with the same fault make one finding: the first sentence, the count, some names.

    Faults are kept by code, in the order in which each code came first.
    """

    name: str
    found: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.found.values()))

    def add(self, code: str, subject: str, sentence: str) -> None:
        """Note that `subject` (a tensor or module) has the fault `code`; `sentence` names it and says what to do."""
        self.found.setdefault(code, []).append((subject, sentence))

    def checks(self, verdict: Verdict) -> Iterator[Check]:
        for code, members in self.found.items():
            more = f" ({len(members) - 1} more like it)" if len(members) > 1 else ""
            subjects = [subject for subject, _ in members]
            yield finding(self.name, verdict, code, f"{members[0][1]}{more}", count=len(members), names=subjects)


def shown(text: str) -> str:
    """Text from outside, quoted, short, and with nothing in it that could confuse a terminal, a log or a page."""
    cut = text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 3]}..."
    return cut if cut.isprintable() and cut.isascii() and cut else ascii(cut)


def finding(
    name: str, verdict: Verdict, code: str, message: str, **evidence: float | str | Sequence[str] | None
) -> Check:
    """A check result whose evidence RFC 8785 can hold and nobody is harmed by: text made harmless, lists cut short."""
    return Check(name, verdict, code, message, {key: _harmless(value) for key, value in evidence.items()})


def _harmless(value: float | str | Sequence[str] | None) -> JsonValue:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -_MAX_EXACT < value < _MAX_EXACT else shown(str(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return shown(value) if isinstance(value, str) else [shown(item) for item in value[:MAX_EXAMPLES]]


def several(names: Sequence[str]) -> str:
    """Names for a sentence: all of a few, else the first ones and how many more."""
    listed = ", ".join(shown(name) for name in names[:3])
    return listed if len(names) <= 3 else f"{listed} and {len(names) - 3} more"  # noqa: PLR2004 - as listed above
