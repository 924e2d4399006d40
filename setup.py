"""The gateway's request path, compiled by mypyc where LOREKEEPER_COMPILED=1 says so: half the processor time a request.

The sources stay as they are and are what runs from a working tree; what is compiled is the package that is installed.
"""

import os

from setuptools import setup  # type: ignore[import-untyped]  # it has no stubs

# What runs for each request or chunk. What isn't here gains nothing by it; and what is made of the database's rows
# (`routing/snapshot`) stays as it is: one value that isn't what its annotation says would keep a gateway from starting.
_PATH = (
    *("completions", "limits", "service", "trace"),
    *("metrics/counts", "nodes/fleet"),
    *("path/calls", "path/retries", "path/targets"),
    *("records/shapes", "shadow/mirror", "shadow/tap"),
    *(f"routing/{name}" for name in ("absences", "admit", "affinity", "authenticate", "breaker", "buckets")),
    *(f"routing/{name}" for name in ("choose", "cost", "current", "engines", "resolve")),
    *(f"surface/{name}" for name in ("endpoints", "fields", "session")),
    *(f"upstream/{name}" for name in ("allowance", "answers", "lane", "llhttp", "pool", "ports", "relay")),
    *(f"wire/{name}" for name in ("body", "connection", "headers", "outbox", "protocol", "replies", "work")),
)


def extensions() -> list[object]:
    """The modules to compile; none unless that is asked for."""
    if os.environ.get("LOREKEEPER_COMPILED") != "1":
        return []
    from mypyc.build import mypycify  # noqa: PLC0415  it is needed for this alone

    options = ("--config-file=", "--ignore-missing-imports", "--cache-dir=build/mypyc")
    return mypycify([*options, *(f"gateway/{name}.py" for name in _PATH)], opt_level="2", debug_level="0")


setup(ext_modules=extensions())
