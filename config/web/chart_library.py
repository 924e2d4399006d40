"""Where the library that draws charts comes from."""

from importlib.util import find_spec
from pathlib import Path


def chart_library() -> list[tuple[str, Path]]:
    """Where Chart.js is: django-unfold carries a current one; nothing else of that package is used.

    As ``STATICFILES_DIRS`` takes it: a prefix and a folder.
    """
    package = find_spec("unfold")
    if package is None or package.origin is None:
        return []
    return [("chart", Path(package.origin).parent / "static" / "unfold" / "js" / "chart")]
