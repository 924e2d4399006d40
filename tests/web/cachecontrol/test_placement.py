"""Where a version is, why it left, and what an operator of its tenant does about it."""

from django.utils import timezone

from cachecontrol.models import Eviction, Residency
from tests.factories.cachecontrol import make_node, make_policy
from tests.factories.registry import make_actor, make_person, make_version
from tests.factories.releases import point_alias
from tests.web.cachecontrol.conftest import AS, World
from tests.web.reading import MOST_QUERIES, queries, shown


def evict(world: World, **facts: object) -> Eviction:
    known = {
        "node": world.node,
        "version": world.own,
        "tier": "gpu",
        "to_tier": "disk",
        "reason": "room",
        "policy": "density",
        "score": 1.25,
        "factors": {"rate": 0.5, "reload": 0.75},
        "runner_up": world.other,
        "runner_up_score": 1.5,
        "asked_by": "globex",
        "at": timezone.now(),
    }
    return Eviction.objects.create(**(known | facts))


def test_why_it_was_evicted_says_reason_score_factors_and_runner_up(world: World) -> None:
    evict(world)
    page = shown(world.admin, f"{AS}/placement")
    assert "To make room for another version" in page
    assert "score 1.250 under density" in page
    assert "how often it is asked for" in page
    assert "globex/secret@v1" in page
    assert "score 1.500, 0.250 more" in page


def test_a_member_is_told_of_a_runner_up_of_another_tenant_without_its_name(world: World) -> None:
    evict(world)
    page = shown(world.viewer, f"{AS}/placement")
    assert "a version of another tenant" in page
    assert "globex" not in page


def test_placement_asks_the_database_little(world: World) -> None:
    point_alias(name="prod", version=world.own)
    evict(world)
    for browser in (world.admin, world.operator):
        assert queries(browser, f"{AS}/placement") <= MOST_QUERIES


def test_an_operator_warms_a_version_on_the_node_of_their_choice(world: World) -> None:
    make_node(base_revision=world.own.base_revision, name="n2")
    asked = shown(world.operator, f"{AS}/warm")
    assert "n2: 0 of 4 places taken" in asked
    assert "n1: it is there or on its way" in asked
    for _click in range(2):
        answer = world.operator.post(f"{AS}/warm", {"node": "n2"})
        assert answer["Location"] == f"{AS}/placement"
    assert Residency.objects.get(node__name="n2", version=world.own).generation == 1
    page = shown(world.operator, f"{AS}/placement")
    assert "to be loaded" in page
    assert 'hx-trigger="every 2s"' in page


def test_a_node_that_takes_nothing_new_says_so_at_the_choice(world: World) -> None:
    make_node(base_revision=world.own.base_revision, name="n2")
    world.admin.post("/ui/fleet/nodes/n2/cordon", {"reason": ""})
    assert "n2: takes nothing new now" in shown(world.operator, f"{AS}/warm")
    refused = world.operator.post(f"{AS}/warm", {"node": "n2"})
    assert refused.status_code == 422
    assert 'id="id_node_error"' in refused.content.decode()


def test_evicting_says_what_it_means_and_leaves_the_files_or_not(world: World) -> None:
    point_alias(name="prod", version=world.own)
    asked = shown(world.operator, f"{AS}/evict/n1")
    assert "It is loaded nowhere else" in asked
    assert "These aliases point to it: prod." in asked
    world.operator.post(f"{AS}/evict/n1", {"to": "disk", "reason": "noisy"})
    assert Residency.objects.get(version=world.own).desired == "disk"
    world.operator.post(f"{AS}/evict/n1", {"to": "absent", "reason": ""})
    assert Residency.objects.get(version=world.own).desired == "absent"
    assert list(Eviction.objects.order_by("pk").values_list("reason", "to_tier")) == [
        ("manual", "disk"),
        ("manual", "remote"),
    ]


def test_whoever_does_not_operate_the_tenant_neither_sees_the_buttons_nor_gets_through(world: World) -> None:
    for browser, status in ((world.viewer, 403), (world.admin, 403)):
        page = shown(browser, f"{AS}/placement")
        assert f"{AS}/warm" not in page
        assert f"{AS}/evict" not in page
        for path in (f"{AS}/warm", f"{AS}/evict/n1"):
            assert browser.get(path).status_code == status
            assert browser.post(path).status_code == status
    other = "/ui/tenants/globex/adapters/secret/versions/v1"
    assert world.operator.get(f"{other}/placement").status_code == 404
    assert world.operator.post(f"{other}/warm", {"node": "n1"}).status_code == 404


def test_a_version_of_another_adapter_can_not_be_reached_through_ones_own_tenant(world: World) -> None:
    assert world.operator.get("/ui/tenants/acme/adapters/secret/versions/v1/placement").status_code == 404


def test_a_pin_goes_through_the_policy(world: World) -> None:
    page = shown(world.admin, f"{AS}/placement")
    base = world.own.base_revision.base_model
    assert f"/ui/fleet/policies/{base.name}/propose?pin_tenant=acme" in page
    assert "propose?pin" not in shown(world.operator, f"{AS}/placement")
    make_policy(
        base_model=base,
        more="pins:\n  - {tenant: acme, adapter: tone, version: v1}\n",
        approver=make_actor(make_person(is_platform_admin=True)),
    )
    assert "yes, by the policy in force" in shown(world.operator, f"{AS}/placement")


def test_evictions_are_filtered_and_paged(world: World) -> None:
    for number in range(60):
        evict(world, reason="ttl" if number % 2 else "room")
    page = shown(world.admin, "/ui/fleet/evictions")
    assert 'rel="next"' in page
    assert "it was idle" in shown(world.admin, "/ui/fleet/evictions?reason=ttl").lower()
    assert "No eviction is like that" in shown(world.admin, "/ui/fleet/evictions?node=n9")
    assert queries(world.viewer, "/ui/fleet/evictions?adapter=tone&tenant=acme&tier=gpu") <= MOST_QUERIES


def test_an_eviction_of_another_tenants_version_is_not_in_a_members_list(world: World) -> None:
    evict(world, version=world.other, runner_up=world.own, asked_by="acme")
    assert "globex" not in shown(world.viewer, "/ui/fleet/evictions")
    assert "Nothing was evicted yet" in shown(world.viewer, "/ui/fleet/evictions")


def test_a_version_that_is_nowhere_says_what_brings_it(world: World) -> None:
    version = make_version(adapter=world.own.adapter, name="v7")
    page = shown(world.viewer, f"/ui/tenants/acme/adapters/tone/versions/{version.name}/placement")
    assert "It is on no node" in page
