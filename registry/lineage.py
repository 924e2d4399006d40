"""Where a version comes from: the shape of it, so that it can be searched. Pure: no Django, no I/O.

::

    {"training_data_digest": "<sha256>", "run_url": "https://…", "git_commit": "<40 or 64 hex digits>",
     "metrics": {"eval_loss": 1.93}, "parent_version": "2026-07-04.1", "extra": {anything}}

All are optional. ``parent_version`` is the name of a version of the same adapter, or ``adapter@version`` of the same
tenant, and is kept in the second form. What else a pipeline wants to keep goes below ``extra``, which is not searched.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from registry.errors import InvalidInput

MAX_BYTES: Final = 64 * 1024
MAX_METRICS: Final = 100
MAX_URL: Final = 2000
_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_METRIC: Final = re.compile(r"[^\s,<>=\x00-\x1f\x7f]{1,100}")
_BOUND: Final = re.compile(r"(?P<metric>[^\s,<>=\x00-\x1f\x7f]{1,100})(?P<sign><=|>=|<|>|=)(?P<value>[^,<>=]{1,40})")
_COMPARISONS: Final = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte", "=": "exact"}
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)

Lineage = dict[str, Any]


def check_lineage(value: Lineage, *, adapter: str) -> Lineage:
    """The lineage of a version of ``adapter`` in its kept form: digests in lower case, nothing empty.

    Raises:
        InvalidInput: names the key (``lineage.run_url``) and says what belongs there.

    """
    if len(json.dumps(value)) > MAX_BYTES:
        raise InvalidInput(f"The lineage is longer than {MAX_BYTES} bytes.", field="lineage")
    for key in value:
        if key not in _CHECKS:
            raise InvalidInput(
                f"A lineage has no “{key[:100]}”. It has {', '.join(_CHECKS)}; anything else goes below extra.",
                field=f"lineage.{key[:100]}",
            )
    kept = {key: _CHECKS[key](given) for key, given in value.items() if given not in (None, "", {})}
    if "parent_version" in kept:
        kept["parent_version"] = full_name(kept["parent_version"], adapter=adapter)
    return kept


def full_name(version: str, *, adapter: str) -> str:
    """``adapter@version``, from that or from the name of a version of ``adapter``."""
    return version if "@" in version else f"{adapter}@{version}"


@dataclass(frozen=True, slots=True)
class Bound:
    """What a metric has to be: ``comparison`` is one of lt, lte, gt, gte and exact."""

    metric: str
    comparison: str
    value: float


def read_bounds(text: str) -> tuple[Bound, ...]:
    """Bounds as people write them: ``eval_loss<2,accuracy>=0.9``. Raises ``InvalidInput``."""
    return tuple(_bound(part.strip()) for part in text.split(","))


def _bound(text: str) -> Bound:
    match = _BOUND.fullmatch(text)
    number = _number(match.group("value")) if match else None
    if match is None or number is None:
        raise InvalidInput(
            f"“{text[:100]}” is not a bound of a metric; write it as eval_loss<2 or accuracy>=0.9.", field="metric"
        )
    return Bound(match.group("metric"), _COMPARISONS[match.group("sign")], number)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _digest(value: object) -> str:
    text = _text(value, "training_data_digest", longest=80).lower().removeprefix("sha256:")
    if not _DIGEST.fullmatch(text):
        raise _refused("training_data_digest", "a SHA-256 digest: 64 hexadecimal digits")
    return text


def _commit(value: object) -> str:
    text = _text(value, "git_commit", longest=64).lower()
    if not _COMMIT.fullmatch(text):
        raise _refused("git_commit", "the whole hash of a commit: 40 or 64 hexadecimal digits")
    return text


def _url(value: object) -> str:
    text = _text(value, "run_url", longest=MAX_URL)
    try:
        parts = urlsplit(text)
        is_web_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_web_address = False
    if not is_web_address or any(char.isspace() or not char.isprintable() for char in text):
        raise _refused("run_url", "an address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise _refused("run_url", "an address without a user name and password")
    return text


def _metrics(value: object) -> dict[str, float]:
    if not isinstance(value, dict) or len(value) > MAX_METRICS:
        raise _refused("metrics", f"an object of at most {MAX_METRICS} names with numbers")
    for name, number in value.items():
        if not _METRIC.fullmatch(name):
            raise _refused(f"metrics.{name[:100]}", "named by 1 to 100 characters without blanks, comma, <, > and =")
        if isinstance(number, bool) or not isinstance(number, int | float) or not _is_finite(number):
            raise _refused(f"metrics.{name}", "a finite number")
    return dict(value)


def _parent(value: object) -> str:
    text = _text(value, "parent_version", longest=200)
    if text.count("@") > 1 or text.startswith("@") or text.endswith("@"):
        raise _refused("parent_version", "VERSION of this adapter, or ADAPTER@VERSION of this tenant")
    return text


def _extra(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _refused("extra", "an object")
    return value


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _text(value: object, key: str, *, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest:
        raise _refused(key, f"a text of at most {longest} characters")
    return value.strip()


def _refused(key: str, wanted: str) -> InvalidInput:
    return InvalidInput(f"lineage.{key} has to be {wanted}.", field=f"lineage.{key}")


_CHECKS: Final[dict[str, Callable[[object], Any]]] = {
    "training_data_digest": _digest,
    "run_url": _url,
    "git_commit": _commit,
    "metrics": _metrics,
    "parent_version": _parent,
    "extra": _extra,
}
