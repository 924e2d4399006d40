from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand

from registry.actors import system_actor
from registry.base_models.description import describe_folder
from registry.services.base_models import register_base_revision


class Command(BaseCommand):
    help = "Register a base model revision from a model folder. Its weights are read for their digests, not copied."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--name", required=True)
        parser.add_argument("--revision", required=True)
        parser.add_argument("--folder", required=True, type=Path)
        parser.add_argument("--max-rank", type=int, default=64)

    def handle(self, *args: object, **options: object) -> None:
        revision = register_base_revision(
            actor=system_actor("register_base_model", how="command"),
            name=str(options["name"]),
            label=str(options["revision"]),
            description=describe_folder(Path(str(options["folder"]))),
            max_rank=int(str(options["max_rank"])),
        )
        self.stdout.write(f"{revision} {revision.digest}")
