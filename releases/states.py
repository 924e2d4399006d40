"""Words of releases that the database knows, too."""

from enum import StrEnum


class MoveKind(StrEnum):
    """Why an alias points where it points."""

    SET = "set"
    MOVE = "move"
    ROLLBACK = "rollback"
