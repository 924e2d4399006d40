"""The editor of cache policies and the four eyes; quotas and figures beside them."""

from typing import Any

import pytest
from django.test import Client

from cachecontrol.models import CachePolicy
from registry.models import AuditRecord
from tests.factories.cachecontrol import make_policy
from tests.factories.registry import make_actor, make_person
from tests.factories.requests import make_request
from tests.web.cachecontrol.conftest import World
from tests.web.reading import MOST_QUERIES, queries, shown


def at(world: World, rest: str = "") -> str:
    return f"/ui/fleet/policies/{world.own.base_revision.base_model.name}{rest}"


def written(world: World, more: str = "") -> str:
    return f"base_model: {world.own.base_revision.base_model.name}\n{more}"


def propose(world: World, more: str, browser: Client | None = None, **facts: str) -> Any:
    text = written(world, more).replace("\n", "\r\n")
    return (browser or world.admin).post(at(world, "/propose"), {"text": text, "comment": "", **facts})


@pytest.fixture
def second(world: World, sign_in: Any) -> Client:
    browser: Client = sign_in(is_platform_admin=True)
    return browser


def test_what_is_wrong_is_said_with_its_line_and_nothing_is_lost(world: World) -> None:
    answer = propose(world, "loading:\n  queue_limit: many\nquotas:\n  default: {gpu_slots: {ceiling: 2, floor: 1}}\n")
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Line 3, loading.queue_limit:" in page
    assert "queue_limit: many" in page
    assert 'id="id_text_error"' in page
    assert "line 2, column" in propose(world, "loading: [").content.decode()
    assert not CachePolicy.objects.exists()


def test_what_the_nodes_can_not_give_is_said_next_to_the_text(world: World) -> None:
    answer = propose(world, "quotas: {tenants: {acme: {gpu_slots: {floor: 99}}}}\n")
    assert answer.status_code == 422
    assert "a guarantee has to be one" in answer.content.decode()


def test_checking_shows_changes_and_meaning_and_proposes_nothing(world: World) -> None:
    page = propose(world, "loading: {queue_limit: 2}\n", check="1").content.decode()
    assert "Nothing was proposed yet" in page
    assert "loading.queue_limit" in page
    assert "256" in page
    assert not CachePolicy.objects.exists()


def test_another_admin_approves_what_they_have_looked_at(world: World, second: Client) -> None:
    address = propose(world, "loading: {queue_limit: 2}\n")["Location"]
    assert address == at(world, "/1")
    assert CachePolicy.objects.get().text == written(world, "loading: {queue_limit: 2}\n")
    own = shown(world.admin, address)
    assert f"{address}/approve" not in own
    assert "another platform admin has to approve it" in own
    policy = CachePolicy.objects.get()
    seen = {"digest": policy.digest, "against": "0", "reason": "fine"}
    refused = world.admin.post(f"{address}/approve", seen)
    assert refused.status_code == 409
    asked = shown(second, f"{address}/approve")
    assert "loading.queue_limit: 256 → 2" in asked
    assert policy.digest in asked
    assert second.post(f"{address}/approve", seen)["Location"] == address
    policy.refresh_from_db()
    assert (policy.state, policy.reason) == ("active", "fine")
    assert second.post(f"{address}/approve", seen).status_code == 302
    assert AuditRecord.objects.filter(action__endswith="cache_policy:approve").count() <= 1


def test_what_came_into_force_meanwhile_is_said_and_not_overwritten(world: World, second: Client) -> None:
    first, other = propose(world, "loading: {queue_limit: 2}\n"), propose(world, "loading: {queue_limit: 3}\n")
    policies = list(CachePolicy.objects.order_by("number"))
    seen = {"against": "0", "reason": ""}
    second.post(f"{first['Location']}/approve", {**seen, "digest": policies[0].digest})
    late = second.post(f"{other['Location']}/approve", {**seen, "digest": policies[1].digest})
    assert late.status_code == 422
    assert "Another policy came into force meanwhile" in late.content.decode()
    wrong = second.post(f"{other['Location']}/approve", {"against": "1", "digest": "0" * 64})
    assert "is not this policy" in wrong.content.decode()


def test_declining_takes_a_reason(world: World, second: Client) -> None:
    address = propose(world, "loading: {queue_limit: 2}\n")["Location"]
    assert second.post(f"{address}/decline", {"reason": ""}).status_code == 422
    assert second.post(f"{address}/decline", {"reason": "too small"}).status_code == 302
    assert CachePolicy.objects.get().state == "declined"
    assert "too small" in shown(world.admin, address)


def test_rolling_back_says_what_changes_and_takes_nobody_else(world: World, second: Client) -> None:
    approver = make_actor(make_person(is_platform_admin=True))
    for limit in (2, 3):
        make_policy(
            base_model=world.own.base_revision.base_model,
            more=f"loading: {{queue_limit: {limit}}}\n",
            approver=approver,
        )
    assert at(world, "/1/roll-back") in shown(world.admin, at(world))
    assert "loading.queue_limit: 3 → 2" in shown(world.admin, at(world, "/1/roll-back"))
    world.admin.post(at(world, "/1/roll-back"), {"reason": "slow"})
    assert CachePolicy.objects.get(state="active").number == 1
    assert "loading.queue_limit: 2 → 256" in shown(world.admin, at(world, "/0/roll-back"))
    world.admin.post(at(world, "/0/roll-back"), {"reason": ""})
    assert not CachePolicy.objects.filter(state="active").exists()
    assert "built-in defaults are in force" in shown(second, at(world))


def test_the_editor_begins_with_what_is_in_force_and_the_pin_that_was_asked_for(world: World) -> None:
    make_policy(
        base_model=world.own.base_revision.base_model,
        more="# ours\nloading: {queue_limit: 9}\n",
        approver=make_actor(make_person(is_platform_admin=True)),
    )
    page = shown(world.admin, at(world, "/propose?pin_tenant=acme&pin_adapter=tone&pin_version=v1"))
    assert "# ours" in page
    assert "- {tenant: acme, adapter: tone, version: v1}" in page
    assert world.admin.get(at(world, "/propose?pin_tenant=a%20b&pin_adapter=x&pin_version=y")).status_code == 400


@pytest.mark.parametrize("rest", ["", "/1", "/propose", "/1/approve", "/1/decline", "/1/roll-back"])
def test_policies_are_for_the_platforms_people_alone(world: World, rest: str) -> None:
    propose(world, "loading: {queue_limit: 2}\n")
    assert world.operator.get(at(world, rest)).status_code == 403
    assert "/ui/fleet/policies" not in shown(world.operator, "/ui/fleet")
    assert world.admin.get(at(world, rest)).status_code == 200


def test_pages_of_policies_ask_the_database_little(world: World) -> None:
    for limit in range(2, 8):
        propose(world, f"loading: {{queue_limit: {limit}}}\n")
    for address in ("/ui/fleet/policies", at(world), at(world, "/3"), at(world, "/propose")):
        assert queries(world.admin, address) <= MOST_QUERIES, address


def test_a_hostile_policy_is_text(world: World) -> None:
    page = propose(world, "sla_classes: {standard: {}, '</textarea><script>': {}}\n").content.decode()
    assert "</textarea><script>" not in page


def test_quotas_show_use_beside_floor_and_ceiling(world: World) -> None:
    make_policy(
        base_model=world.own.base_revision.base_model,
        more="quotas: {tenants: {acme: {gpu_slots: {floor: 2, ceiling: 2}, loads_per_minute: 30}}}\n",
        approver=make_actor(make_person(is_platform_admin=True)),
    )
    everybody = shown(world.admin, f"/ui/fleet/quotas/{world.own.base_revision.base_model.name}")
    assert "globex" in everybody
    own = shown(world.viewer, "/ui/tenants/acme/quotas")
    assert "of 2 used" in own
    assert "2 guaranteed" in own
    assert "of 30" in own
    assert "globex" not in own
    assert world.admin.get("/ui/fleet/quotas").status_code == 302
    assert world.viewer.get("/ui/fleet/quotas").status_code == 403


def test_quotas_ask_the_database_little(world: World) -> None:
    for address in ("/ui/tenants/acme/quotas", f"/ui/fleet/quotas/{world.own.base_revision.base_model.name}"):
        assert queries(world.admin, address) <= MOST_QUERIES, address


def test_figures_show_hits_times_and_failures(world: World) -> None:
    assert "No request came in that time" in shown(world.admin, "/ui/fleet/figures")
    for status in (200, 200, 200, 500):
        make_request(world.own, status=status, error_kind="" if status == 200 else "engine", ttft_ms=40)
    make_request(world.other, tier="remote")
    for address in ("/ui/fleet/figures", "/ui/tenants/acme/figures?days=7"):
        assert "25.0 %" in shown(world.admin, address)
        assert queries(world.admin, address) <= MOST_QUERIES
    assert "globex" in shown(world.admin, "/ui/fleet/figures")
    assert "secret" not in shown(world.viewer, "/ui/tenants/acme/figures")
    assert world.viewer.get("/ui/fleet/figures").status_code == 403
