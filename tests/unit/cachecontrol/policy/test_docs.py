import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cachecontrol.policy.parse import parse_policy
from tests.unit.cachecontrol.policy.texts import FULL

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "cache-policies.md"
EXAMPLES = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)


def test_the_examples_in_the_documents_are_policies() -> None:
    short, whole = EXAMPLES
    assert short == FULL
    document = parse_policy(whole).model_dump(mode="json")
    assert set(keys(document)) - {"critical", "premium", "standard", "acme"} <= set(re.findall(r"\w+", whole))


def test_the_whole_example_shows_the_defaults_where_it_doesn_t_choose() -> None:
    shown, default = parse_policy(EXAMPLES[1]), parse_policy("base_model: x")
    for section in ("loading", "scoring", "sla_classes", "replicas"):
        assert getattr(shown, section) == getattr(default, section)
