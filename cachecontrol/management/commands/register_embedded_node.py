import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from cachecontrol.models import Node
from cachecontrol.services.nodes import NodeFacts, change_node, register_node, rotate_node_token
from registry.actors import system_actor
from registry.selectors import find_base_revision
from registry.services.bootstrap import is_valid_token, write_secret_file


class Command(BaseCommand):
    help = "Register the node of an embedded stack, or say anew what it is; keep its token in a file of mode 0600."

    def add_arguments(self, parser: ArgumentParser) -> None:
        for name in ("--name", "--engine-url", "--base-model", "--base-revision"):
            parser.add_argument(name, required=True)
        for name in ("--gpu-slots", "--cpu-slots", "--max-rank", "--disk-bytes"):
            parser.add_argument(name, required=True, type=int)
        parser.add_argument("--engine-kind", default="vllm")
        parser.add_argument("--memory-bytes", type=int)
        parser.add_argument("--data-file", required=True, type=Path)

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  Django's signature
        actor = system_actor("bootstrap", how="command")
        file: Path = options["data_file"]
        facts = _facts(options)
        node = Node.objects.filter(name=options["name"]).first()
        if node is None:
            token = register_node(actor=actor, name=options["name"], facts=facts).token
            write_secret_file(file, _document(token))
            return
        change_node(actor=actor, node=node, facts=facts)
        if not is_valid_token(_kept_token(file)):
            write_secret_file(file, _document(rotate_node_token(actor=actor, node=node).token))


def _facts(options: dict[str, Any]) -> NodeFacts:
    revision = find_base_revision(base_model=options["base_model"], label=options["base_revision"])
    return NodeFacts(
        engine_kind=options["engine_kind"],
        engine_url=options["engine_url"].rstrip("/"),
        base_revision=revision,
        gpu_slots=options["gpu_slots"],
        cpu_slots=options["cpu_slots"],
        max_rank=options["max_rank"],
        disk_bytes=options["disk_bytes"],
        memory_bytes=options["memory_bytes"],
    )


def _document(token: str) -> str:
    return json.dumps({"node_token": token}, indent=2) + "\n"


def _kept_token(file: Path) -> str:
    if not file.exists():
        return ""
    return str(json.loads(file.read_text()).get("node_token", ""))
