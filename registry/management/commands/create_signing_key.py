from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand

from registry.signing.local_key import LocalKeySigner, generate_key_file
from registry.signing.trust_file import write_trust_file


class Command(BaseCommand):
    help = "Make an ECDSA P-256 signing key (0600) and, beside it, its public half (.pub). An existing key is kept."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path)

    def handle(self, *args: object, **options: object) -> None:
        path = Path(str(options["path"]))
        key = LocalKeySigner.from_pem_file(path) if path.exists() else generate_key_file(path)
        public = path.with_name(f"{path.name}.pub")
        # Once it is there, it may hold more than this key: those of a rotation, with their times.
        if not public.exists():
            write_trust_file(public, key.public_pem())
        self.stdout.write(str(path))
