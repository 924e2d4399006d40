"""How every command behaves: `--json` everywhere, one sentence per error, no traceback for what can be expected.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage or configuration, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from client.cli.output import Output, escape_what_cannot_be_written
from client.cli.session import Session
from client.errors import ConfigurationError, LorekeeperError
from client.i18n import _

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class UsageRefused(LorekeeperError):
    """The command line is wrong."""

    code = "usage"


class LocalFailure(LorekeeperError):
    """The local machine refused: disk full, no permission, a path that isn't there."""

    code = "local"


def _json_chosen(context: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001  # click's form
    if value:
        context.ensure_object(Session).json_mode = True


class JsonCommand(click.Command):
    """A command with `--json`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  # click's own signature
        """Add the option behind the command's own."""
        super().__init__(*args, **kwargs)
        self.params.append(
            click.Option(
                ["--json"],
                is_flag=True,
                expose_value=False,
                is_eager=True,
                callback=_json_chosen,
                help=_("Print one JSON document."),
            )
        )


class LorekeeperGroup(click.Group):
    """A group whose commands all know `--json` and whose errors are sentences."""

    command_class = JsonCommand
    group_class = type

    def main(  # type: ignore[override]  # click overloads the result on standalone_mode; this one always exits
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        **extra: Any,  # noqa: ANN401  # click passes these on to the context
    ) -> NoReturn:
        """Run and exit with the documented code."""
        escape_what_cannot_be_written()
        given = list(sys.argv[1:] if args is None else args)
        extra.pop("standalone_mode", None)
        out = Output(json_mode="--json" in given)
        try:
            result = super().main(given, prog_name, complete_var, standalone_mode=False, **extra)
        except (click.Abort, KeyboardInterrupt):
            click.echo(_("Stopped."), err=True)
            sys.exit(EXIT_INTERRUPTED)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(EXIT_USAGE)
        except click.ClickException as error:
            out.error(_usage_sentence(error))
            sys.exit(error.exit_code)
        except ConfigurationError as error:
            out.error(error)
            sys.exit(EXIT_USAGE)
        except LorekeeperError as error:
            out.error(error)
            sys.exit(EXIT_REFUSED)
        except OSError as error:
            out.error(_local_failure(error))
            sys.exit(EXIT_REFUSED)
        sys.exit(result if isinstance(result, int) else 0)


def _usage_sentence(error: click.ClickException) -> UsageRefused:
    message = error.format_message()
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return UsageRefused(message)
    advice = _("See `{command} --help`.").format(command=context.command_path)
    return UsageRefused(f"{message} {advice}")


def _local_failure(error: OSError) -> LocalFailure:
    where = error.filename if error.filename is not None else _("this machine")
    return LocalFailure(_("{where}: {reason}.").format(where=where, reason=error.strerror or error))
