"""Plan files, checked here before they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.errors import LorekeeperError
from client.i18n import _

if TYPE_CHECKING:
    from pathlib import Path


class PlanRefused(LorekeeperError):
    """A file that is no plan of a release."""

    code = "plan_refused"


def read_plan(file: Path) -> str:
    """Return the file's text.

    Raises:
        PlanRefused: it is no plan; says what is wrong and where.

    """
    from registry.documents.read import DocumentError  # noqa: PLC0415  only needed here
    from releases.plan.parse import parse_plan  # noqa: PLC0415  as above

    try:
        text = file.read_text(encoding="utf-8")
        parse_plan(text)
    except (DocumentError, UnicodeDecodeError) as error:
        raise PlanRefused(_("{file} is no release plan: {reason}.").format(file=file, reason=error)) from error
    return text
