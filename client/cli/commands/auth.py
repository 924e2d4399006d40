"""`login` and `whoami`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from client.cli.app import JsonCommand
from client.cli.session import Session, pass_session
from client.config import TOKEN_VARIABLE, URL_VARIABLE, Credentials, clean_url, config_path, is_token, save_credentials
from client.i18n import _

if TYPE_CHECKING:
    from client.models import Identity


@click.command(cls=JsonCommand, help=_("Store a server address and a token, after checking them."))
@click.option(
    "--url", help=_("The server's address; default: variable {name}, or asked for.").format(name=URL_VARIABLE)
)
@click.option("--token-stdin", is_flag=True, help=_("Read the token from standard input."))
@pass_session
def login(session: Session, url: str | None, *, token_stdin: bool) -> None:
    """Ask for what is missing, check it by whoami, store it for the owner only."""
    address = url or session.environ.get(URL_VARIABLE) or _ask(_("Server address"), "--url")
    credentials = Credentials(clean_url(address), _token(session, from_stdin=token_stdin))
    identity = session.connect(credentials).whoami()
    save_credentials(credentials, session.environ)
    path = config_path(session.environ)
    session.out.document({"url": credentials.url, "config": path, "identity": identity})
    session.out.line(_("Logged in to {url} as {who}.").format(url=credentials.url, who=_name(identity)))
    session.out.note(_("The token is stored in {path}.").format(path=path))


@click.command(cls=JsonCommand, help=_("Show whose token is used and what it may do."))
@pass_session
def whoami(session: Session) -> None:
    """Print the identity."""
    identity = session.client.whoami()
    session.out.document(identity)
    roles = [f"{tenant}: {', '.join(names)}" for tenant, names in sorted(identity.roles.items())]
    session.out.fields(
        [
            (_("server"), session.client.url),
            (_("name"), _name(identity)),
            (_("tenant"), identity.tenant),
            (_("scopes"), identity.scopes),
            (_("roles"), roles or "-"),
            (_("platform admin"), _("yes") if identity.is_platform_admin else _("no")),
        ]
    )


def _name(identity: Identity) -> str:
    if identity.person is not None:
        return f"{identity.person.name} <{identity.person.email}>".strip()
    return _("application of {tenant}").format(tenant=identity.tenant or "-")


def _token(session: Session, *, from_stdin: bool) -> str:
    if from_stdin:
        token = sys.stdin.read().strip()
    else:
        token = session.environ.get(TOKEN_VARIABLE, "").strip() or _ask(_("Token"), "--token-stdin", hidden=True)
    if not is_token(token):
        raise click.UsageError(_("The token is empty or has characters that tokens don't have; copy it again."))
    return token


def _ask(label: str, instead: str, *, hidden: bool = False) -> str:
    """Prompt on a terminal; without one say which option to use."""
    if not sys.stdin.isatty():
        raise click.UsageError(_("{label} is missing; give it by {option}.").format(label=label, option=instead))
    return str(click.prompt(label, hide_input=hidden, err=True))
