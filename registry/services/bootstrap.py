"""The first account and the tokens of the parts, for a platform that has none yet."""

import json
import os
from pathlib import Path

from django.db import transaction

from registry import events
from registry.actors import Actor, system_actor
from registry.models import ApiToken, Person
from registry.services.stores import artifact_store
from registry.services.tenants import ensure_person
from registry.services.tokens import create_platform_token, digest_of
from registry.states import Scope, TokenKind

_ADMIN_SCOPES = (Scope.READ, Scope.ADMIN, Scope.AUDIT, Scope.RELEASE)


def bootstrap_platform(*, admin_email: str, data_file: Path) -> None:
    """Make the store ready, the admin, tokens of the admin, a gateway and a monitor; they go to ``data_file`` (0600).

    Tokens that the file holds and the database knows are kept.
    """
    artifact_store().ensure_ready()
    known = json.loads(data_file.read_text()) if data_file.exists() else {}
    with transaction.atomic():
        actor = system_actor("bootstrap", how="command")
        admin = _ensure_admin(actor, admin_email)
        if not is_valid_token(known.get("admin_token", "")):
            known["admin_token"] = create_platform_token(
                actor=actor, name="bootstrap admin", kind=TokenKind.PERSON, scopes=_ADMIN_SCOPES, person=admin
            ).text
        if not is_valid_token(known.get("gateway_token", "")):
            known["gateway_token"] = create_platform_token(
                actor=actor, name="gateway", kind=TokenKind.GATEWAY, scopes=[Scope.DEMAND]
            ).text
        if not is_valid_token(known.get("metrics_token", "")):
            known["metrics_token"] = create_platform_token(
                actor=actor, name="metrics", kind=TokenKind.MONITOR, scopes=[Scope.METRICS]
            ).text
        write_secret_file(data_file, json.dumps(known, indent=2) + "\n")


def _ensure_admin(actor: Actor, email: str) -> Person:
    person = ensure_person(email=email)
    if not person.is_platform_admin:
        person.is_platform_admin = True
        person.save(update_fields=["is_platform_admin"])
        events.platform_admin_made(actor=actor, person=person)
    return person


def is_valid_token(text: str) -> bool:
    """Whether the database knows this token and it is not revoked."""
    return bool(text) and ApiToken.objects.filter(digest=digest_of(text), revoked_at__isnull=True).exists()


def write_secret_file(path: Path, text: str) -> None:
    """Write whole or not at all, readable by the owner alone."""
    temporary = path.with_name(f".{path.name}.new")
    # What a killed run or somebody else left there may be open to others.
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
