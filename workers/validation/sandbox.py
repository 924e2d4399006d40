"""Full regular expressions from outside, matched in a child process that may die of them in our place."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

MAX_PATTERN_LENGTH: Final = 4000
_WALL_SECONDS: Final = 20
# Python's `re` is what PEFT matches with, and it knows neither time nor memory limits of its own.
_SCRIPT: Final = """
import json, re, resource, sys, warnings
resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
warnings.simplefilter("ignore")
job = json.load(sys.stdin)
try:
    pattern = re.compile(job["pattern"])
except (re.error, RecursionError, OverflowError):
    json.dump(None, sys.stdout)
else:
    json.dump([i for i, name in enumerate(job["names"]) if pattern.fullmatch(name)], sys.stdout)
"""


class PatternError(ValueError):
    """A pattern is no regular expression, or costs too much to match; the message names it."""


def fullmatches(pattern: str, names: Sequence[str]) -> frozenset[str]:
    """Those of `names` that `pattern` matches as a whole, by the rules of Python's `re`.

    Raises:
        PatternError: it is no regular expression, or took more than 2 s or 256 MiB.

    """
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise PatternError(f"the pattern {pattern[:40]!a}... is longer than {MAX_PATTERN_LENGTH} characters")
    job = json.dumps({"pattern": pattern, "names": list(names)})
    command = [sys.executable, "-I", "-S", "-c", _SCRIPT]
    try:
        child = subprocess.run(
            command, input=job, capture_output=True, text=True, timeout=_WALL_SECONDS, env={}, check=True
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        raise PatternError(f"the pattern {pattern[:80]!a} takes too much time or memory to match") from error
    matched = json.loads(child.stdout)
    if matched is None:
        raise PatternError(f"the pattern {pattern[:80]!a} is no regular expression")
    return frozenset(names[index] for index in matched)
