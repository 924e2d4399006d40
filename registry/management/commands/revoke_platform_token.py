from argparse import ArgumentParser

from django.core.management.base import BaseCommand

from registry.actors import system_actor
from registry.services.tokens import revoke_platform_token


class Command(BaseCommand):
    help = "Revoke the token of an admin, a gateway, a node or a monitor, given its prefix (the 12 digits after lk_)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("prefix")

    def handle(self, *args: object, **options: object) -> None:
        actor = system_actor("revoke_platform_token", how="command")
        token = revoke_platform_token(actor=actor, prefix=str(options["prefix"]))
        self.stdout.write(str(token))
