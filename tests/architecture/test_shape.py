"""The shape of the code: sizes, one writer per state field, names that say what is inside."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cachecontrol", "client", "config", "deploy", "gateway", "registry", "releases", "workers")
MAX_FUNCTION_LINES = 50
MAX_FILE_LINES = 500
MAX_PACKAGE_FILES = 20
MAX_TASK_LINES = 10
MAX_VIEW_LINES = 15
ATTICS = {"utils.py", "helpers.py", "common.py", "signals.py", "misc.py"}


def sources() -> list[Path]:
    found = [path for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    return sorted(path for path in found if "migrations" not in path.parts)


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_functions_are_short() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name} has {lines_of(node)} lines"
        for path in sources()
        for node in functions(path)
        if lines_of(node) > MAX_FUNCTION_LINES
    ]
    assert long == []


def test_files_are_short() -> None:
    assert [str(path) for path in sources() if len(path.read_text().splitlines()) > MAX_FILE_LINES] == []


def test_packages_are_small() -> None:
    sizes: dict[Path, int] = {}
    for path in sources():
        sizes[path.parent] = sizes.get(path.parent, 0) + (path.name != "__init__.py")
    assert {str(folder.relative_to(ROOT)): size for folder, size in sizes.items() if size > MAX_PACKAGE_FILES} == {}


def test_there_are_no_attics() -> None:
    assert [str(path) for path in sources() if path.name in ATTICS] == []


@pytest.mark.parametrize("app", ["registry", "releases", "cachecontrol", "config"])
def test_views_are_thin(app: str) -> None:
    fat = [
        f"{path.name}:{method.name}"
        for folder in ("api", "web")
        for path in (ROOT / app / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and node.name.endswith(("View", "Page"))
        for method in node.body
        if isinstance(method, ast.FunctionDef) and lines_of(method) > MAX_VIEW_LINES
    ]
    assert fat == []


def test_tasks_are_thin() -> None:
    fat = [
        f"{path.name}:{node.name}"
        for path in (ROOT / "workers" / "tasks").glob("*.py")
        for node in functions(path)
        if node.decorator_list and lines_of(node) > MAX_TASK_LINES
    ]
    assert fat == []


# Who may write which state field. Everything else goes through the transition.
APPS_WITH_STATES = {"registry", "releases", "cachecontrol"}


@pytest.mark.parametrize(
    ("field", "writers"),
    [
        ("state", {"registry/transitions.py", "releases/transitions.py", "cachecontrol/transitions.py"}),
        ("observed", {"cachecontrol/transitions.py"}),
    ],
)
def test_a_state_field_has_one_writer(field: str, writers: set[str]) -> None:
    writing = set()
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if _updates(node, field) or _assigns(node, field):
                writing.add(str(path.relative_to(ROOT)))
    assert {path for path in writing if path.split("/")[0] in APPS_WITH_STATES} <= writers


def _updates(node: ast.AST, field: str) -> bool:
    """``….update(state=…)``."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "update"
        and any(keyword.arg == field for keyword in node.keywords)
    )


def _assigns(node: ast.AST, field: str) -> bool:
    """``thing.state = …``."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Attribute) and target.attr == field for target in targets)
