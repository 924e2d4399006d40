from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand

from registry.services.bootstrap import bootstrap_platform


class Command(BaseCommand):
    help = "Make the first platform admin, and write tokens of admin, gateway and metrics to a file (0600)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--admin-email", required=True)
        parser.add_argument("--data-file", required=True, type=Path)

    def handle(self, *args: object, **options: object) -> None:
        bootstrap_platform(admin_email=str(options["admin_email"]), data_file=Path(str(options["data_file"])))
        self.stdout.write(str(options["data_file"]))
