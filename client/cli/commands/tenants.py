"""`tenant create|list`, `member add|password-link` and `token create|list|revoke`."""

from __future__ import annotations

import click

from client.cli.app import LorekeeperGroup
from client.cli.session import Session, pass_session
from client.i18n import _

_SCOPES = ("read", "upload", "approve", "release", "operate", "audit", "infer", "admin")
_ROLES = ("viewer", "uploader", "reviewer", "release_manager", "operator", "auditor")


@click.group(cls=LorekeeperGroup, help=_("Tenants (platform admin)."))
def tenant() -> None:
    """Group the tenant commands."""


@tenant.command("create", help=_("Create a tenant."))
@click.argument("name")
@click.option("--title", default="", help=_("The name that people see."))
@pass_session
def create_tenant(session: Session, name: str, title: str) -> None:
    """Create and print it."""
    created = session.client.tenants.create(name, title=title)
    session.out.document(created)
    session.out.line(_("Tenant {name} exists now.").format(name=created.name))


@tenant.command("list", help=_("List the tenants you may see."))
@pass_session
def list_tenants(session: Session) -> None:
    """Print one row per tenant."""
    found = session.client.tenants.all()
    session.out.document({"results": found})
    session.out.table((_("tenant"), _("title")), ((row.name, row.title) for row in found))


@click.group(cls=LorekeeperGroup, help=_("People and their roles in a tenant."))
def member() -> None:
    """Group the member commands."""


@member.command("add", help=_("Give a person a role in a tenant; the person is created if new."))
@click.argument("tenant")
@click.argument("email")
@click.argument("role", type=click.Choice(_ROLES))
@click.option("--name", default="", help=_("The person's name."))
@pass_session
def add_member(session: Session, tenant: str, email: str, role: str, name: str) -> None:
    """Add and print the membership."""
    added = session.client.tenants.add_member(tenant, email=email, role=role, name=name)
    session.out.document(added)
    session.out.line(_("{email} is {role} of {tenant}.").format(email=added.email, role=added.role, tenant=tenant))


@member.command("password-link", help=_("Make a link by which a person sets a password for the site, once."))
@click.argument("email")
@pass_session
def make_password_link(session: Session, email: str) -> None:
    """Make and print it."""
    made = session.client.tenants.make_password_link(email)
    session.out.document(made)
    session.out.line(made.url)


@click.group(cls=LorekeeperGroup, help=_("API tokens of a tenant."))
def token() -> None:
    """Group the token commands."""


@token.command("create", help=_("Create a token; prints it this once."))
@click.argument("tenant")
@click.argument("name")
@click.option("--kind", type=click.Choice(["person", "application"]), default="person", show_default=True)
@click.option("--person", "person_email", metavar="EMAIL", help=_("Whose token it is (kind person)."))
@click.option("--scope", "scopes", multiple=True, required=True, type=click.Choice(_SCOPES), help=_("May be repeated."))
@click.option("--expires-in-days", type=click.IntRange(1), help=_("Default: as the server decides."))
@pass_session
def create_token(
    session: Session,
    tenant: str,
    name: str,
    *,
    kind: str,
    person_email: str | None,
    scopes: tuple[str, ...],
    expires_in_days: int | None,
) -> None:
    """Create and print the token's text."""
    if kind == "person" and not person_email:
        raise click.UsageError(_("A token of kind person needs --person EMAIL."))
    created = session.client.tenants.create_token(
        tenant, name=name, kind=kind, scopes=scopes, person_email=person_email, expires_in_days=expires_in_days
    )
    session.out.document(created)
    session.out.line(created.token or "")
    session.out.note(_("This is the token {name}; it isn't shown again.").format(name=created.name))


@token.command("list", help=_("List a tenant's tokens."))
@click.argument("tenant")
@pass_session
def list_tokens(session: Session, tenant: str) -> None:
    """Print one row per token."""
    found = session.client.tenants.tokens(tenant)
    session.out.document({"results": found})
    columns = (_("prefix"), _("name"), _("kind"), _("scopes"), _("expires"), _("last used"), _("revoked"))
    session.out.table(
        columns, ((t.prefix, t.name, t.kind, t.scopes, t.expires_at, t.last_used_at, t.revoked_at) for t in found)
    )


@token.command("revoke", help=_("Revoke a token by its prefix."))
@click.argument("tenant")
@click.argument("prefix")
@pass_session
def revoke_token(session: Session, tenant: str, prefix: str) -> None:
    """Revoke it."""
    session.client.tenants.revoke_token(tenant, prefix)
    session.out.document({"prefix": prefix, "revoked": True})
    session.out.line(_("Token {prefix} is revoked.").format(prefix=prefix))
