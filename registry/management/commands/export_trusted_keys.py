from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand

from registry.selectors import list_signing_keys
from registry.signing.keys import render_trusted_key
from registry.signing.trust_file import write_trust_file


class Command(BaseCommand):
    help = "Write the published public keys and their times as PEM: what nodes and verifiers take as trusted keys."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, nargs="?", help="Replaced as a whole; default: standard output.")

    def handle(self, *args: object, path: Path | None, **options: object) -> None:
        text = "\n".join(
            render_trusted_key(key.public_pem, valid_from=key.valid_from, valid_to=key.valid_to, revoked=key.revoked_at)
            for key in list_signing_keys()
        )
        if path is None:
            self.stdout.write(text)
        else:
            write_trust_file(path, text)
