"""The fleet and its nodes as people of several roles see them."""

from datetime import timedelta

import pytest
from django.utils import timezone

from cachecontrol.models import LoadRequest, Node, Residency
from cachecontrol.services.residencies import warm_version
from registry.models import AuditRecord
from tests.factories.cachecontrol import beat, make_node, report
from tests.factories.registry import make_actor, make_adapter, make_version
from tests.web.cachecontrol.conftest import World, load
from tests.web.conftest import SignIn
from tests.web.reading import MOST_QUERIES, queries, shown


def test_the_map_shows_what_is_in_the_slots_and_says_what_is_an_estimate(world: World) -> None:
    page = shown(world.admin, "/ui/fleet")
    assert "acme/tone@v1" in page
    assert "globex/secret@v1" in page
    assert "(an estimate)" in page
    assert "120 ms" in page


@pytest.mark.parametrize("address", ["/ui/fleet", "/ui/fleet/nodes/n1", "/ui/fleet/evictions"])
def test_a_member_is_never_told_of_another_tenants_versions(world: World, address: str) -> None:
    warm_version(actor=make_actor(), node=world.node, version=make_version(adapter=world.other.adapter))
    Node.objects.filter(pk=world.node.pk).update(
        drift={"unknown": [world.other.engine_name, world.own.engine_name], "mismatched": []}
    )
    page = shown(world.viewer, address)
    assert "globex" not in page
    assert "secret" not in page
    assert world.other.engine_name not in page


def test_a_member_of_no_tenant_sees_no_fleet(world: World, sign_in: SignIn) -> None:
    assert sign_in().get("/ui/fleet").status_code == 403


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({"status": "lost"}, "down"),
        ({"status": "new"}, "never reported"),
        ({"tainted": True}, "tainted"),
        ({"poisoned": True}, "poisoned"),
        ({"engine_sick_since": timezone.now()}, "engine sick"),
        ({"recycling_since": timezone.now()}, "recycling"),
        ({"stuck": True}, "stuck"),
    ],
)
def test_a_node_says_how_it_stands(world: World, facts: dict[str, object], word: str) -> None:
    Node.objects.filter(pk=world.node.pk).update(**facts)
    assert word in shown(world.viewer, "/ui/fleet/nodes/n1")


def test_a_node_says_since_when_it_is_tainted_and_forgets_it_with_the_restart(world: World) -> None:
    report(world.node, tainted=True)
    world.node.refresh_from_db()
    assert world.node.tainted_at is not None
    beat(world.node, boot_id="boot-2")
    world.node.refresh_from_db()
    assert not world.node.tainted
    assert Node.objects.get(pk=world.node.pk).tainted_at is None


def test_draining_is_confirmed_done_once_and_told_with_its_reason(world: World) -> None:
    asked = shown(world.admin, "/ui/fleet/nodes/n1/drain")
    assert "2 versions in its engine are placed on other nodes" in asked
    for _click in range(2):
        answer = world.admin.post("/ui/fleet/nodes/n1/drain", {"reason": "new disk"})
        assert answer["Location"] == "/ui/fleet/nodes/n1"
    record = AuditRecord.objects.get(action="platform:node:drain")
    assert record.reason == "new disk"
    page = shown(world.admin, "/ui/fleet/nodes/n1")
    assert "2 versions are still in its engine" in page
    assert 'hx-trigger="every 2s"' in page
    assert "/ui/fleet/nodes/n1/resume" in page


def test_a_drained_node_says_that_it_is_empty_and_asks_no_more(world: World) -> None:
    world.admin.post("/ui/fleet/nodes/n1/drain", {"reason": ""})
    Residency.objects.all().delete()
    page = shown(world.admin, "/ui/fleet/nodes/n1")
    assert "Its engine is empty" in page
    assert "hx-trigger" not in page


@pytest.mark.parametrize("verb", ["drain", "resume", "cordon", "uncordon", "recycle", "token"])
def test_nobody_but_the_platform_operates_a_node(world: World, verb: str) -> None:
    page = shown(world.operator, "/ui/fleet/nodes/n1")
    assert f"/ui/fleet/nodes/n1/{verb}" not in page
    assert world.operator.get(f"/ui/fleet/nodes/n1/{verb}").status_code == 403
    assert world.operator.post(f"/ui/fleet/nodes/n1/{verb}").status_code == 403


def test_cordons_come_and_go(world: World) -> None:
    world.admin.post("/ui/fleet/nodes/n1/cordon", {"reason": ""})
    world.node.refresh_from_db()
    assert world.node.cordoned_at is not None
    assert "stays cordoned" in shown(world.admin, "/ui/fleet/nodes/n1/resume")
    world.admin.post("/ui/fleet/nodes/n1/uncordon", {"reason": ""})
    world.node.refresh_from_db()
    assert not world.node.cordoned
    assert Node.objects.get(pk=world.node.pk).cordoned_at is None


def test_an_engine_that_nobody_can_restart_says_so_next_to_the_question(world: World) -> None:
    answer = world.admin.post("/ui/fleet/nodes/n1/recycle", {"reason": ""})
    assert answer.status_code == 422
    assert "was given no way to restart" in answer.content.decode()
    report(world.node, restartable=True)
    world.admin.post("/ui/fleet/nodes/n1/recycle", {"reason": ""})
    world.node.refresh_from_db()
    assert world.node.recycling_since is not None


def test_a_load_under_way_is_shown_with_who_waits_and_the_page_looks_again(world: World) -> None:
    assert "hx-trigger" not in shown(world.admin, "/ui/fleet")
    now = timezone.now()
    LoadRequest.objects.create(
        pool=world.own.base_revision.digest,
        version=world.own,
        tenant=world.acme,
        sla="standard",
        waiting=3,
        enqueued_at=now,
        deadline_at=now + timedelta(minutes=1),
    )
    page = shown(world.viewer, "/ui/fleet")
    assert "not chosen yet" in page
    assert 'hx-trigger="every 3s"' in page


@pytest.mark.parametrize("address", ["/ui/fleet", "/ui/fleet/nodes/n1", "/ui/fleet/nodes/n1?tier=gpu"])
def test_pages_of_the_fleet_ask_the_database_little_however_much_there_is(world: World, address: str) -> None:
    for number in range(4):
        node = make_node(base_revision=world.own.base_revision, name=f"more-{number}", gpu_slots=4, cpu_slots=8)
        for _version in range(4):
            load(node, make_version(adapter=world.own.adapter))
    assert queries(world.admin, address) <= MOST_QUERIES


def test_the_map_is_narrowed_and_empty_fleets_say_what_to_do(world: World) -> None:
    make_node(base_revision=world.own.base_revision, name="far-away")
    page = shown(world.admin, "/ui/fleet?text=far")
    assert "/ui/fleet/nodes/far-away" in page
    assert "/ui/fleet/nodes/n1" not in page
    assert "/ui/fleet/nodes/n1" not in shown(world.admin, "/ui/fleet?standing=lost")


def test_an_empty_fleet_says_what_to_do(db: None, sign_in: SignIn) -> None:
    page = shown(sign_in(is_platform_admin=True), "/ui/fleet")
    assert "No node is registered yet" in page
    assert "/ui/fleet/register" in page


def test_a_node_is_registered_and_its_token_shown_once(world: World) -> None:
    facts = {
        "name": "n2",
        "base_revision": world.own.base_revision_id,
        "engine_kind": "vllm",
        "engine_url": "http://10.0.0.7:8000",
        "gpu_slots": 4,
        "cpu_slots": 2,
        "max_rank": 64,
        "disk_gb": 100,
    }
    refused = world.admin.post("/ui/fleet/register", facts)
    assert refused.status_code == 422
    assert 'id="id_cpu_slots_error"' in refused.content.decode()
    made = world.admin.post("/ui/fleet/register", {**facts, "cpu_slots": 8})
    node = Node.objects.get(name="n2")
    assert node.disk_bytes == 100 * 10**9
    assert node.token.prefix in made.content.decode()
    assert node.token.prefix not in shown(world.admin, "/ui/fleet/nodes/n2")


def test_a_new_token_ends_the_old_one(world: World) -> None:
    before = world.node.token.prefix
    answer = world.admin.post("/ui/fleet/nodes/n1/token")
    world.node.refresh_from_db()
    assert world.node.token.prefix != before
    assert world.node.token.prefix in answer.content.decode()


def test_a_hostile_name_is_text(world: World) -> None:
    Residency.objects.filter(version=world.own).update(message="<script>alert(1)</script>")
    page = shown(world.admin, "/ui/fleet/nodes/n1")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_a_node_that_is_not_there_is_not_found(world: World) -> None:
    assert world.admin.get("/ui/fleet/nodes/n9").status_code == 404
    assert world.admin.get("/ui/fleet/nodes/n9/drain").status_code == 404


def test_versions_of_one_adapter_do_not_hide_another(world: World) -> None:
    load(
        make_node(base_revision=world.own.base_revision, name="n3"),
        make_version(
            adapter=make_adapter(tenant=world.acme, base_model=world.own.base_revision.base_model, name="law"),
            base_revision=world.own.base_revision,
        ),
    )
    assert "acme/law@" in shown(world.viewer, "/ui/fleet")
