from argparse import ArgumentParser
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from registry.actors import Actor, system_actor
from registry.errors import LorekeeperError
from registry.services.keys import revoke_signing_key
from registry.services.resigning import resign_version, signatures_to_renew
from registry.signing.errors import BadSignature


class Command(BaseCommand):
    help = "Trust nothing any more that a key signed, and let the key that signs now sign it again. Safe to repeat."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("key_id")
        parser.add_argument("--reason", required=True, help="Goes into the audit log and the published keys.")

    def handle(self, *args: object, key_id: str, reason: str, **options: object) -> None:
        actor = system_actor("revoke_signing_key", how="command")
        try:
            revoke_signing_key(actor=actor, key_id=key_id, reason=reason)
            broken = [version_id for version_id in signatures_to_renew() if not self._resign(actor, version_id)]
        except LorekeeperError as error:
            raise CommandError(f"{error} Run this again when it is mended.") from error
        if broken:
            named = ", ".join(str(version_id) for version_id in broken)
            raise CommandError(f"The signatures of these do not hold, revoke them or look who changed them: {named}")
        self.stdout.write(f"{key_id} is revoked; hand the trusted keys to the nodes: export_trusted_keys")

    def _resign(self, actor: Actor, version_id: UUID) -> bool:
        """What does not hold keeps no other version from being signed again."""
        try:
            resign_version(actor=actor, version_id=version_id)
        except BadSignature as error:
            self.stderr.write(f"{version_id} is not signed again: {error}")
            return False
        self.stdout.write(f"{version_id} is signed again")
        return True
