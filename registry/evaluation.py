"""What an adapter is evaluated on and judged by, as a tenant writes it down: examples and gates.

Pure: no Django, no I/O.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, Self
from uuid import UUID

import rfc8785

from registry.errors import InvalidInput

MAX_EXAMPLES: Final = 500
MAX_PROMPT: Final = 8_000
MAX_REFERENCE: Final = 4_000
MAX_PATTERN: Final = 300
MAX_SET_BYTES: Final = 2 * 1024 * 1024
MAX_BOUND: Final = 1e9

Enforcement = Literal["reject", "warn"]
_MAX_UNBOUNDED: Final = 3
_TOKEN: Final = re.compile(
    r"\\(?P<escaped>.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<braces>\{[0-9,]*\})|(?P<plain>.)", re.DOTALL
)
_AMBIGUOUS_SET: Final = re.compile(r"(?!^)\[|--|&&|~~|\|\|")
_SMALL_BRACES: Final = re.compile(r"\{[0-9]{1,2}(?:,[0-9]{0,2})?\}|\{,[0-9]{1,2}\}")
_UNBOUNDED: Final = re.compile(r"[*+]|\{[0-9]*,\}")
# A repeated group can take exponential time, and what looks ahead, behind or back can as well.
_COSTLY: Final = re.compile(r"\)[*+{]|\(\?(?!:)")


@dataclass(frozen=True, slots=True)
class Example:
    """One question of an evaluation set.

    Attributes:
        prompt: what is asked; in a base that has a chat template, the one message of a user.
        reference: the answer that is wanted, if one is.
        forbidden: a regular expression that no answer may match anywhere, if there is one.

    """

    prompt: str
    reference: str | None = None
    forbidden: str | None = None


def parse_examples(rows: Sequence[object], *, field: str = "examples") -> tuple[Example, ...]:
    """Read the rows of an evaluation set.

    Raises:
        InvalidInput: a row is not what an example may be; the field names it (``examples[3].forbidden``).

    """
    if not 1 <= len(rows) <= MAX_EXAMPLES:
        raise InvalidInput(f"{field}: an evaluation set has 1 to {MAX_EXAMPLES} examples", field=field)
    examples = tuple(_example(row, f"{field}[{number}]") for number, row in enumerate(rows))
    if len(json.dumps(examples_json(examples)).encode()) > MAX_SET_BYTES:
        raise InvalidInput(f"{field}: an evaluation set has at most {MAX_SET_BYTES >> 20} MiB", field=field)
    return examples


def examples_json(examples: Sequence[Example]) -> list[dict[str, Any]]:
    """The examples as JSON values, without the parts they don't have; `parse_examples` reads them back."""
    return [{key: value for key, value in asdict(example).items() if value is not None} for example in examples]


def examples_digest(examples: Sequence[Example]) -> str:
    """SHA-256 in hex over the RFC 8785 form of the examples, in their order."""
    return hashlib.sha256(rfc8785.dumps(examples_json(examples))).hexdigest()


def check_pattern(pattern: str, *, field: str) -> str:
    """Return `pattern` if it is a regular expression of Python that can't take exponential time; else raise.

    A leading ``(?i)`` is allowed; repeated groups, look-around, back-references and repeats above 99 are not.

    Raises:
        InvalidInput: says what to leave out.

    """
    if not 1 <= len(pattern) <= MAX_PATTERN:
        raise InvalidInput(f"{field}: a pattern has 1 to {MAX_PATTERN} characters", field=field)
    skeleton = "".join(_piece(token, field) for token in _TOKEN.finditer(pattern.removeprefix("(?i)")))
    if _COSTLY.search(skeleton) or len(_UNBOUNDED.findall(skeleton)) > _MAX_UNBOUNDED:
        raise InvalidInput(
            f"{field}: the pattern could take very long. Leave out repeats of groups and look-around, and use at most "
            f"{_MAX_UNBOUNDED} of * and +",
            field=field,
        )
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidInput(f"{field}: this is no regular expression: {error}", field=field) from error
    return pattern


@dataclass(frozen=True, slots=True)
class Gates:
    """What a version has to keep to, absolutely and against the version that is served now; None leaves a gate open.

    Attributes:
        enforcement: whether a gate that is not kept rejects the version or only warns.
        max_perplexity: of the references.
        min_exact_agreement: share of answers that equal their reference, 0 to 1.
        min_token_agreement: share of the references' tokens that are the most likely ones, 0 to 1.
        max_forbidden_hits: number of answers that match their forbidden pattern.
        max_mean_kl: divergence from the base in nats per token.
        max_perplexity_increase: against the version served now, as a share of its perplexity (0.1 is 10 %).
        max_exact_agreement_drop: against the version served now, 0 to 1.
        max_token_agreement_drop: against the version served now, 0 to 1.
        max_forbidden_hits_increase: against the version served now.
        max_mean_kl_increase: against the version served now, in nats per token.

    """

    enforcement: Enforcement = "reject"
    max_perplexity: float | None = None
    min_exact_agreement: float | None = None
    min_token_agreement: float | None = None
    max_forbidden_hits: float | None = None
    max_mean_kl: float | None = None
    max_perplexity_increase: float | None = None
    max_exact_agreement_drop: float | None = None
    max_token_agreement_drop: float | None = None
    max_forbidden_hits_increase: float | None = None
    max_mean_kl_increase: float | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Self:
        """Read gates.

        Raises:
            InvalidInput: a gate is unknown or its bound makes no sense; the field names it.

        """
        known = {each.name for each in fields(cls)}
        if unknown := sorted(str(name)[:80] for name in data.keys() - known):
            raise InvalidInput(f"{unknown[0]} is no gate. There are: {', '.join(sorted(known))}", field=unknown[0])
        bounds = {name: _bound(name, value) for name, value in data.items() if name != "enforcement"}
        return cls(enforcement=_enforcement(data.get("enforcement", "reject")), **bounds)

    def to_json(self) -> dict[str, Any]:
        """Every gate by name; `from_json` reads it back."""
        return asdict(self)

    @property
    def closed(self) -> dict[str, float]:
        """The gates that have a bound, by name."""
        return {name: value for name, value in asdict(self).items() if name != "enforcement" and value is not None}


@dataclass(frozen=True, slots=True)
class EvaluationBrief:
    """What the evaluation of one version is to be made of.

    Attributes:
        set_name: the evaluation set's, empty when there is none for this version.
        examples: of the set.
        gates: of the tenant.
        current_version_id: the version that is served now and that this one is compared with, if there is another.

    """

    set_name: str = ""
    examples: tuple[Example, ...] = ()
    gates: Gates = Gates()
    current_version_id: UUID | None = None


def _example(row: object, field: str) -> Example:
    if not isinstance(row, Mapping):
        raise InvalidInput(
            f"{field}: an example is an object with prompt, and perhaps reference, forbidden", field=field
        )
    if unknown := sorted(str(name)[:80] for name in row.keys() - {"prompt", "reference", "forbidden"}):
        raise InvalidInput(f"{field}.{unknown[0]}: no part of an example", field=f"{field}.{unknown[0]}")
    forbidden = _text(row, "forbidden", MAX_PATTERN, field)
    return Example(
        prompt=_required(_text(row, "prompt", MAX_PROMPT, field), f"{field}.prompt"),
        reference=_text(row, "reference", MAX_REFERENCE, field),
        forbidden=None if forbidden is None else check_pattern(forbidden, field=f"{field}.forbidden"),
    )


def _required(text: str | None, field: str) -> str:
    if text is None:
        raise InvalidInput(f"{field}: an example needs a prompt", field=field)
    return text


def _text(row: Mapping[Any, object], name: str, limit: int, field: str) -> str | None:
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= limit:
        raise InvalidInput(f"{field}.{name}: must be a text of 1 to {limit} characters", field=f"{field}.{name}")
    return value


def _piece(token: re.Match[str], field: str) -> str:
    """What a token of a pattern means for its cost: literal characters and sets are all alike."""
    escaped, group, braces = token["escaped"], token["set"], token["braces"]
    if escaped is not None and escaped in "123456789":
        raise InvalidInput(f"{field}: the pattern refers back to a group, which can take very long", field=field)
    if group is not None and _AMBIGUOUS_SET.search(group):
        raise InvalidInput(f"{field}: write \\[, \\-, \\&, \\~ or \\| inside of a set [...]", field=field)
    if token["plain"] == "[":
        raise InvalidInput(f"{field}: the set that begins with [ has no end: write \\[ for the character", field=field)
    if braces is not None and not _SMALL_BRACES.fullmatch(braces):
        raise InvalidInput(f"{field}: a pattern repeats at most 99 times: {braces}", field=field)
    return "x" if escaped is not None or group is not None else token[0]


def _bound(name: str, value: object) -> float | None:
    if value is None:
        return None
    most = 1.0 if "agreement" in name else MAX_BOUND
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or not 0 <= value <= most
    ):
        raise InvalidInput(f"{name}: must be a number from 0 to {most:g}, or null", field=name)
    return float(value)


def _enforcement(value: object) -> Enforcement:
    if value not in ("reject", "warn"):
        raise InvalidInput("enforcement: must be reject or warn", field="enforcement")
    return "warn" if value == "warn" else "reject"
