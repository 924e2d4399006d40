from argparse import ArgumentParser
from datetime import datetime

from django.core.management.base import BaseCommand, CommandError

from registry.actors import system_actor
from registry.errors import RegistryError
from registry.services.keys import rotate_signing_key
from registry.signing.keys import read_time


def time(text: str) -> datetime:
    found = read_time(text)
    if found is None:
        raise ValueError(text)
    return found


class Command(BaseCommand):
    help = (
        "Let a configured key take over (LOREKEEPER_SIGNING_KEY lists old and new). What was signed before stays valid."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--at", type=time, help="When, ISO 8601 with a time zone; default: now.")
        parser.add_argument("--key-id", help="Which key; default: the only one that is not published yet.")

    def handle(self, *args: object, at: datetime | None, key_id: str | None, **options: object) -> None:
        try:
            key = rotate_signing_key(actor=system_actor("rotate_signing_key", how="command"), at=at, key_id=key_id)
        except RegistryError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{key.key_id} signs from {key.valid_from.isoformat()} on")
