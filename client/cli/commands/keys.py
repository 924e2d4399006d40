"""`key list|trust` and `pipeline register|keys|revoke|require|sign|attach|signatures`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from client.cli.app import LorekeeperGroup
from client.cli.params import FILE, FOLDER, NEW_PATH, version_argument
from client.cli.session import Session, pass_session
from client.cli.signing import read_bundle, sign_folder, trust_keys
from client.config import trusted_keys_path
from client.i18n import _

if TYPE_CHECKING:
    from pathlib import Path

    from client.refs import VersionRef


@click.group(cls=LorekeeperGroup, help=_("The registry's own public keys."))
def key() -> None:
    """Group the key commands."""


@key.command("list", help=_("List the published signing keys and when they sign."))
@pass_session
def list_keys(session: Session) -> None:
    """Print one row per key."""
    found = session.client.keys.published()
    session.out.document({"keys": found})
    columns = (_("key"), _("valid from"), _("valid to"), _("revoked"))
    session.out.table(columns, ((k.key_id, k.valid_from, k.valid_to, k.revoked_at) for k in found))


@key.command("trust", help=_("Trust the keys that the server publishes now, for `verify` and `pull`."))
@click.option("--output", type=NEW_PATH, help=_("Another file than the one that `verify` takes by itself."))
@pass_session
def trust(session: Session, output: Path | None) -> None:
    """Save them; whether they are the right ones only people can compare."""
    found = session.client.keys.published()
    path = output or trusted_keys_path(session.environ)
    trust_keys(path, json.dumps({"keys": [asdict(each) for each in found]}, indent=2) + "\n")
    session.out.document({"path": path, "keys": [each.key_id for each in found]})
    for each in found:
        session.out.line(each.key_id)
    session.out.note(_("{path} trusts these keys; compare them with what an operator tells you.").format(path=path))


@click.group(cls=LorekeeperGroup, help=_("What training pipelines sign with keys of their own."))
def pipeline() -> None:
    """Group the pipeline commands."""


@pipeline.command("register", help=_("Trust a pipeline's public key in a tenant (platform admin)."))
@click.argument("tenant")
@click.argument("name")
@click.argument("public_key", type=FILE)
@pass_session
def register(session: Session, tenant: str, name: str, public_key: Path) -> None:
    """Register and print it."""
    text = public_key.read_text(encoding="utf-8", errors="replace")
    made = session.client.keys.register(tenant, name=name, public_key=text)
    session.out.document(made)
    session.out.line(_("{tenant} trusts the key {key} of {name}.").format(tenant=tenant, key=made.key_id, name=name))


@pipeline.command("keys", help=_("List a tenant's pipeline keys."))
@click.argument("tenant")
@pass_session
def list_pipeline_keys(session: Session, tenant: str) -> None:
    """Print one row per key."""
    found = session.client.keys.registered(tenant)
    session.out.document({"results": found})
    columns = (_("name"), _("key"), _("registered"), _("revoked"), _("reason"))
    rows = ((k.name, k.key_id, k.created_at, k.revoked_at, k.revoked_reason) for k in found)
    session.out.table(columns, rows)


@pipeline.command("revoke", help=_("Trust nothing any more that was signed with a pipeline's key (platform admin)."))
@click.argument("tenant")
@click.argument("key_id")
@click.option("--reason", required=True, help=_("Goes into the audit log."))
@pass_session
def revoke(session: Session, tenant: str, key_id: str, reason: str) -> None:
    """Revoke it."""
    gone = session.client.keys.revoke(tenant, key_id, reason=reason)
    session.out.document(gone)
    session.out.line(_("The key {key} of {name} is revoked.").format(key=gone.key_id, name=gone.name))


@pipeline.command("require", help=_("Approve only versions that their pipeline signed (platform admin)."))
@click.argument("tenant")
@click.option("--off", is_flag=True, help=_("Approve others, too."))
@pass_session
def require(session: Session, tenant: str, off: bool) -> None:  # noqa: FBT001  # click passes a flag
    """Change the tenant's policy."""
    required = session.client.keys.require_pipeline_signature(tenant, required=not off)
    session.out.document({"tenant": tenant, "require_pipeline_signature": required})
    needed = _("{tenant} takes only versions that their pipeline signed.")
    free = _("{tenant} takes versions without a pipeline's signature.")
    session.out.line((needed if required else free).format(tenant=tenant))


@pipeline.command("sign", help=_("Sign a folder as the public model-signing tool does, offline."))
@click.argument("folder", type=FOLDER)
@click.option("--key", "private_key", required=True, type=FILE, help=_("The private key (PEM, ECDSA P-256)."))
@click.option("--output", required=True, type=NEW_PATH, help=_("Where the bundle goes; not into the folder."))
@pass_session
def sign(session: Session, folder: Path, private_key: Path, output: Path) -> None:
    """Write the bundle."""
    key_id = sign_folder(folder, private_key, output)
    session.out.document({"folder": folder, "bundle": output, "key_id": key_id})
    session.out.line(_("{folder} is signed in {bundle}.").format(folder=folder, bundle=output))


@pipeline.command("attach", help=_("Attach a pipeline's bundle to a version, before it is approved."))
@version_argument
@click.argument("bundle", type=FILE)
@pass_session
def attach(session: Session, ref: VersionRef, bundle: Path) -> None:
    """Attach and print whose it is."""
    made = session.client.keys.attach(ref, read_bundle(bundle))
    session.out.document(made)
    session.out.line(_("{ref} is signed by {name}.").format(ref=ref, name=made.key))


@pipeline.command("signatures", help=_("List the bundles that pipelines made over a version's files."))
@version_argument
@pass_session
def signatures(session: Session, ref: VersionRef) -> None:
    """Print one row per bundle."""
    found = session.client.keys.attached(ref)
    session.out.document({"results": found})
    columns = (_("pipeline"), _("key"), _("attached"), _("by"), _("trusted"))
    rows = ((s.key, s.key_id, s.created_at, s.attached_by, _("yes") if s.trusted else _("no")) for s in found)
    session.out.table(columns, rows)
