"""Reading single metrics out of a page in Prometheus' text form."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Sample:
    labels: Mapping[str, str]
    value: float


def samples(page: str, name: str) -> Iterator[Sample]:
    """The samples of the metric with exactly this name; lines that can't be read are left out."""
    line = re.compile(rf"^{re.escape(name)}(?:\{{(.*)\}})? (\S+)", re.MULTILINE)
    for match in line.finditer(page):
        try:
            value = float(match.group(2))
        except ValueError:
            continue
        yield Sample(dict(_LABEL.findall(match.group(1) or "")), value)


def total(page: str, name: str) -> float:
    """The sum over all label sets; 0 when the metric isn't there (yet)."""
    return sum(sample.value for sample in samples(page, name))
