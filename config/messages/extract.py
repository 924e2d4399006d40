"""What there is to translate: the marked texts of code and templates, by the app whose catalogue has them."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.utils.translation.template import templatize

ROOT: Final = Path(__file__).resolve().parents[2]
# The templates of each app's own pages; every other template is of ``config``.
APPS: Final = ("registry", "releases", "cachecontrol", "config")
_MARKS: Final = frozenset({"_", "gettext", "gettext_lazy", "ngettext", "ngettext_lazy"})
_IN_TEMPLATE: Final = re.compile(r"\b(?:n?gettext|_)\(")
_LITERAL: Final = re.compile(r"""\s*u?("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*,?""")


@dataclass(frozen=True, slots=True)
class Marked:
    """A text to translate; ``plural`` is empty where it has none. ``place`` is a file and a line."""

    text: str
    plural: str
    place: tuple[str, int]


def marked_in(app: str) -> Iterator[Marked]:
    """What the app's code and templates mark, each as often as it stands there."""
    for path in sorted((ROOT / app).rglob("*.py")):
        yield from _in_code(path)
    folders = [ROOT / "templates" / app] if app != "config" else _other_templates()
    for folder in folders:
        for path in sorted(folder.rglob("*.html")):
            yield from _in_template(path)


def _other_templates() -> list[Path]:
    return [folder for folder in sorted((ROOT / "templates").iterdir()) if folder.name not in APPS]


def _in_code(path: Path) -> Iterator[Marked]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MARKS:
            texts = [
                each.value for each in node.args[:2] if isinstance(each, ast.Constant) and isinstance(each.value, str)
            ]
            if texts:
                plural = texts[1] if node.func.id.startswith("ngettext") else ""
                yield Marked(texts[0], plural, (_name(path), node.lineno))


def _in_template(path: Path) -> Iterator[Marked]:
    source = templatize(path.read_text(), origin=str(path))
    for match in _IN_TEMPLATE.finditer(source):
        texts: list[str] = []
        end = match.end()
        while found := _LITERAL.match(source, end):
            texts.append(str(ast.literal_eval(found[1])))
            end = found.end()
        if texts:
            plural = texts[1] if match[0].startswith("ngettext") else ""
            yield Marked(texts[0], plural, (_name(path), source.count("\n", 0, match.start()) + 1))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
