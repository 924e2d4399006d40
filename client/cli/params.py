"""Argument types of the command line, and arguments that several commands share."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from client.refs import PairRef, VersionRef

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")


class PairParam(click.ParamType[PairRef]):
    """TENANT/NAME."""

    def __init__(self, name: str) -> None:
        """Take the word for usage lines, such as TENANT/ADAPTER."""
        self.name = name

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> PairRef:
        """Read the text, or fail with the right form."""
        if isinstance(value, PairRef):
            return value
        try:
            return PairRef.parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class VersionParam(click.ParamType[VersionRef]):
    """TENANT/ADAPTER@VERSION."""

    name = "TENANT/ADAPTER@VERSION"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> VersionRef:
        """Read the text, or fail with the right form."""
        if isinstance(value, VersionRef):
            return value
        try:
            return VersionRef.parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


ADAPTER = PairParam("TENANT/ADAPTER")
ALIAS = PairParam("TENANT/ALIAS")
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
PERCENT = click.FloatRange(0, 100)
TIME = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z"])
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_PATH = click.Path(path_type=Path)


def utc(at: datetime) -> datetime:
    """Take a time without a zone for one of UTC."""
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def adapter_argument(function: F) -> F:
    """Add the argument TENANT/ADAPTER as `adapter`."""
    return click.argument("adapter", type=ADAPTER, metavar=ADAPTER.name)(function)


def alias_argument(function: F) -> F:
    """Add the argument TENANT/ALIAS as `alias`."""
    return click.argument("alias", type=ALIAS, metavar=ALIAS.name)(function)


def version_argument(function: F) -> F:
    """Add the argument TENANT/ADAPTER@VERSION as `ref`."""
    return click.argument("ref", type=VersionParam(), metavar=VersionParam.name)(function)
