"""The text of a policy with one more pin in it. Pure."""

import re
from typing import Final

import yaml

from cachecontrol.policy.document import PolicyDocument
from cachecontrol.policy.parse import parse_policy
from cachecontrol.policy.tenants import Pin
from registry.documents.read import DocumentError

_PINS: Final = re.compile(r"^pins:[ \t]*(?:#[^\n]*)?\n", re.MULTILINE)


def text_of(document: PolicyDocument) -> str:
    """The document as YAML, with what is not the default."""
    return str(yaml.safe_dump(document.model_dump(mode="json", exclude_defaults=True), sort_keys=False))


def with_pin(text: str, pin: Pin) -> str:
    """The text with the pin, as its writer left it wherever that is possible; unchanged where it is there already."""
    document = parse_policy(text)
    if pin in document.pins:
        return text
    wanted = document.model_copy(update={"pins": (*document.pins, pin)})
    return next((each for each in _written(text, _line(pin)) if _means(each, wanted)), text_of(wanted))


def _written(text: str, line: str) -> list[str]:
    """Ways to write one more line into the text: into its list of pins, or as the first of a new list."""
    whole = text if text.endswith("\n") else f"{text}\n"
    found = _PINS.search(whole)
    ways = [f"{whole[: found.end()]}{line}{whole[found.end() :]}"] if found else []
    return [*ways, f"{whole}pins:\n{line}"]


def _line(pin: Pin) -> str:
    facts = ", ".join(f"{name}: {_scalar(value)}" for name, value in pin.model_dump(exclude_none=True).items())
    return f"  - {{{facts}}}\n"


def _scalar(value: str) -> str:
    return str(yaml.safe_dump(value, default_flow_style=True, width=1000)).split("\n")[0]


def _means(text: str, wanted: PolicyDocument) -> bool:
    try:
        document = parse_policy(text)
    except DocumentError:
        return False
    pins = frozenset(document.pins)
    return pins == frozenset(wanted.pins) and document.model_copy(update={"pins": ()}) == wanted.model_copy(
        update={"pins": ()}
    )
