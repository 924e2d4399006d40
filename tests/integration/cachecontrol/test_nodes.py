import json
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from cachecontrol.models import Node
from cachecontrol.services.lifecycle import tend_nodes
from cachecontrol.services.nodes import change_node, rotate_node_token
from registry.errors import InvalidInput, NameTaken, NotAuthenticated, NotFound, PermissionDenied
from registry.models import AuditRecord
from registry.services.tokens import authenticate_token
from registry.states import Role, Scope
from tests.factories.cachecontrol import make_node, register, report
from tests.factories.registry import make_actor, make_base_revision, make_member, make_person, make_tenant

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


def platform_actions() -> list[str]:
    return list(AuditRecord.objects.filter(chain="platform").order_by("seq").values_list("action", flat=True))


def test_a_registered_node_gets_a_token_that_speaks_for_it_alone() -> None:
    made = register(name="n1")
    told = platform_actions()
    actor = authenticate_token(text=made.token)
    assert (actor.kind, actor.scopes) == ("node", frozenset({Scope.NODE}))
    assert Node.objects.get(token__prefix=actor.token_prefix).name == "n1"
    assert made.node.status == "new"
    assert told == ["tenant:token:create", "platform:node:register"]


def test_a_name_is_registered_once_and_leaves_no_token_behind() -> None:
    register(name="n1")
    with pytest.raises(NameTaken):
        register(name="n1")
    assert platform_actions().count("tenant:token:create") == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "No/Name"),
        ("engine_kind", "abacus"),
        ("engine_url", "ftp://host"),
        ("engine_url", "http://user:secret@host"),
        ("engine_url", "http://host/v1"),
        ("engine_url", "http://"),
        ("engine_url", "http://host:99999"),
        ("gpu_slots", 0),
        ("cpu_slots", 1),
        ("max_rank", 0),
        ("disk_bytes", 0),
    ],
)
def test_a_node_that_makes_no_sense_is_refused_with_the_field(field: str, value: object) -> None:
    facts: dict[str, Any] = {field: value}
    with pytest.raises(InvalidInput) as caught:
        register(**facts)
    assert caught.value.field == field
    assert not Node.objects.exists()


def test_a_rotated_token_replaces_the_old_one_at_once() -> None:
    made = register()
    again = rotate_node_token(actor=make_actor(), node=made.node)
    with pytest.raises(NotAuthenticated):
        authenticate_token(text=made.token)
    told = platform_actions()[-3:]
    assert authenticate_token(text=again.token).token_prefix == again.node.token.prefix
    assert told == ["tenant:token:create", "tenant:token:revoke", "platform:node:rotate_token"]


@pytest.mark.parametrize("role", list(Role))
def test_only_a_platform_admin_registers_nodes_and_rotates_tokens(role: Role) -> None:
    node = register().node
    actor = make_member(make_tenant(), role)
    with pytest.raises(PermissionDenied):
        rotate_node_token(actor=actor, node=node)
    admin = make_actor(make_person(is_platform_admin=True))
    assert rotate_node_token(actor=admin, node=node).token
    with pytest.raises(PermissionDenied):
        rotate_node_token(actor=make_actor(make_person(is_platform_admin=True), scopes={Scope.READ}), node=node)


def test_saying_the_same_of_a_node_again_records_nothing() -> None:
    node = register().node
    before = platform_actions()
    facts = {name: getattr(node, name) for name in ("engine_kind", "engine_url", "gpu_slots", "cpu_slots")}
    from cachecontrol.services.nodes import NodeFacts

    same = NodeFacts(base_revision=node.base_revision, max_rank=node.max_rank, disk_bytes=node.disk_bytes, **facts)
    change_node(actor=make_actor(), node=node, facts=same)
    assert platform_actions() == before


def test_a_silent_node_is_lost_and_comes_back_with_its_next_report(settings: Any) -> None:
    settings.NODE_TIMEOUT_S = 15
    node = make_node()
    tend_nodes(actor=make_actor())
    Node.objects.filter(pk=node.pk).update(last_seen_at=timezone.now() - timedelta(seconds=16))
    tend_nodes(actor=make_actor())
    tend_nodes(actor=make_actor())
    node.refresh_from_db()
    assert node.status == "lost"
    report(node)
    node.refresh_from_db()
    assert node.status == "up"
    assert platform_actions()[-2:] == ["platform:node:lose", "platform:node:report"]


def test_the_embedded_node_is_registered_once_and_keeps_its_token(tmp_path: Path) -> None:
    revision = make_base_revision()
    file = tmp_path / "node.json"

    def run(**changed: Any) -> str:
        options: dict[str, Any] = {
            "name": "local",
            "engine_url": "http://127.0.0.1:8100",
            "base_model": revision.base_model.name,
            "base_revision": revision.label,
            "gpu_slots": 2,
            "cpu_slots": 4,
            "max_rank": 16,
            "disk_bytes": 10**9,
            "data_file": file,
            **changed,
        }
        arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        call_command("register_embedded_node", *arguments)
        return str(json.loads(file.read_text())["node_token"])

    first = run()
    assert authenticate_token(text=first).kind == "node"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run(engine_url="http://127.0.0.1:9999/") == first
    assert Node.objects.get(name="local").engine_url == "http://127.0.0.1:9999"
    file.unlink()
    again = run()
    assert again != first
    assert authenticate_token(text=again).kind == "node"
    with pytest.raises(NotFound):
        run(base_revision="no-such")
