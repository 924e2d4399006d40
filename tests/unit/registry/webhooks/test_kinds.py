import ast
import re
from pathlib import Path

import pytest

from registry.webhooks.kinds import FAMILIES, KINDS, PATTERNS, tags_for

ROOT = Path(__file__).resolve().parents[4]
EVENTS = [*(ROOT / app / "events.py" for app in ("registry", "releases", "cachecontrol"))]
# Verbs that an events module fills into a tag, by the tag's beginning.
FILLED = {
    "adapter:version:": {"finalize", "validate", "approve", "break_glass", "decline", "yank", "revoke", "expire"},
    "tenant:alias:": {"set", "move", "roll_back"},
    "tenant:release:": {
        "make",
        "approve",
        "start",
        "begin_step",
        "pass_step",
        "pause",
        "resume",
        "retry",
        "promote",
        "abort",
        "roll_back",
    },
    "platform:node:": {"cordon", "uncordon", "drain", "resume"},
    "node:residency:": {"want", "keep", "release"},
}
# What of these objects is told is not of these families.
TOLD = {"version", "approval", "approval_policy", "break_glass", "release", "release_template", "alias", "node"} | {
    "residency",
    "quota",
}


def tags() -> set[str]:
    """Every tag that the events modules write, those with a verb filled in by all of their verbs."""
    found: set[str] = set()
    for path in EVENTS:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.keyword) or node.arg != "action":
                continue
            if isinstance(node.value, ast.JoinedStr):
                beginning = ast.literal_eval(node.value.values[0])
                found |= {beginning + verb for verb in FILLED[beginning]}
            else:
                constants = (each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant))
                found |= {text for text in constants if isinstance(text, str) and text.count(":") == 2}
    return found


def test_whatever_the_log_tells_of_these_objects_is_an_event() -> None:
    of_them = {tag for tag in tags() if tag.split(":")[1] in TOLD}
    assert of_them == set(KINDS)


def test_every_verb_of_a_release_is_known() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "releases" / "services").rglob("*.py"))
    verbs = set(re.findall(r'\baction(?:: str)? ?= ?"([a-z_]+)"', code))
    assert verbs <= FILLED["tenant:release:"]


@pytest.mark.parametrize("kind", sorted(set(KINDS.values())))
def test_a_kind_is_a_family_and_what_happened(kind: str) -> None:
    assert re.fullmatch(r"[a-z]+\.[a-z_]+", kind)
    assert len(kind) <= 60


def test_a_pattern_is_a_kind_or_all_of_a_family() -> None:
    assert tags_for(["version.revoked"]) == {"adapter:version:revoke"}
    assert tags_for(["version.approved"]) == {"adapter:version:approve", "adapter:version:break_glass"}
    assert tags_for(["node.*"]) == {tag for tag in KINDS if tag.startswith("platform:node:")}
    assert tags_for([f"{family}.*" for family in FAMILIES]) == set(KINDS)
    assert tags_for([]) == frozenset()
    assert {f"{family}.*" for family in FAMILIES} | set(KINDS.values()) == set(PATTERNS)


def test_the_document_names_every_kind() -> None:
    text = (ROOT / "docs" / "webhooks.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z]+)` \| (.*) \|$", text, re.MULTILINE))
    assert set(rows) == FAMILIES
    missing = [kind for kind in KINDS.values() if f"`{kind.partition('.')[2]}`" not in rows[kind.partition(".")[0]]]
    assert missing == []
