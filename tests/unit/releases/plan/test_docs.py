import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from releases.plan.document import PlanDocument
from releases.plan.parse import parse_plan

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "releases.md"
EXAMPLES = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def test_every_example_is_a_plan() -> None:
    assert len(EXAMPLES) > 1
    for text in EXAMPLES:
        parse_plan(text)


def test_the_whole_example_is_the_built_in_template_and_names_every_key() -> None:
    assert parse_plan(EXAMPLES[0]) == PlanDocument()
    assert set(keys(PlanDocument().model_dump(mode="json"))) <= set(re.findall(r"\w+", EXAMPLES[0]))
