"""An operator's day in a browser: look at the fleet, drain a node and see it empty, warm a version, see why it left."""

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from cachecontrol.models import Eviction, Node, Residency
from cachecontrol.services.residencies import evict_version
from cachecontrol.states import Outcome
from registry.models import Version
from registry.states import Role
from tests.e2e.web.browsing import LOOKS, Window, window
from tests.factories.cachecontrol import make_node, make_policy, tell
from tests.factories.registry import (
    make_actor,
    make_adapter,
    make_base_revision,
    make_person,
    make_tenant,
    make_version,
)
from tests.web.cachecontrol.conftest import load
from tests.web.conftest import signed_in

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("sent", "signer", "store")]


@pytest.fixture
def nodes(transactional_db: None) -> tuple[Node, Node]:
    """Two nodes of one pool; what acme and globex have is on the first."""
    acme, globex = make_tenant(name="acme"), make_tenant(name="globex")
    base = make_base_revision(label="r1")
    first = make_node(base_revision=base, name="n1", gpu_slots=4, cpu_slots=8)
    for tenant, name in ((acme, "tone"), (acme, "law"), (globex, "secret")):
        adapter = make_adapter(tenant=tenant, base_model=base.base_model, name=name)
        load(first, make_version(adapter=adapter, base_revision=base, name="v1"))
    Residency.objects.filter(version__adapter__name="law").update(tier="cpu")
    text = "loading: {queue_limit: 64}\nquotas: {tenants: {acme: {gpu_slots: {floor: 3, ceiling: 4}}}}\n"
    make_policy(base_model=base.base_model, more=text, approver=make_actor(make_person(is_platform_admin=True)))
    make_policy(base_model=base.base_model, more=text.replace("64", "32"))
    return first, make_node(base_revision=base, name="n2", tainted=True)


def looks_well(opened: Window, name: str) -> None:
    assert (opened.violations(), opened.overflow()) == ([], 0), name
    opened.shoot(f"fleet/{name}")


def test_a_node_is_drained_and_seen_to_empty(
    browser: Browser, live_server: LiveServer, nodes: tuple[Node, Node]
) -> None:
    with window(browser, live_server.url) as opened:
        opened.enter(signed_in(make_person(is_platform_admin=True)))
        page = opened.open("/ui/fleet")
        expect(page.get_by_role("link", name="globex/secret@v1")).to_be_visible()
        page.get_by_role("link", name="n1", exact=True).first.click()
        page.get_by_role("link", name="Drain").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("3 versions in its engine")
        assert opened.violations() == []
        dialog.get_by_label("Reason").fill("new disk")
        dialog.get_by_role("button", name="Drain it").click()
        expect(page.get_by_text("3 versions are still in its engine")).to_be_visible()
        for version in Version.objects.filter(residencies__node=nodes[0]):
            evict_version(actor=make_actor(), node=nodes[0], version=version)
            Residency.objects.filter(version=version, observed="loaded").update(acted_generation=1)
            tell(nodes[0], version, Outcome.EVICTED)
        expect(page.get_by_text("Its engine is empty")).to_be_visible()
        assert opened.complaints == []


def test_a_version_is_warmed_and_says_why_it_was_evicted(
    browser: Browser, live_server: LiveServer, nodes: tuple[Node, Node]
) -> None:
    version = Version.objects.get(adapter__name="tone")
    Eviction.objects.create(
        node=nodes[1],
        version=version,
        tier="gpu",
        to_tier="disk",
        reason="room",
        policy="density",
        score=0.4,
        factors={"rate": 0.1, "reload": 0.3},
        at=timezone.now(),
    )
    with window(browser, live_server.url) as opened:
        opened.enter(signed_in(make_person(roles={version.adapter.tenant: [Role.OPERATOR]})))
        page = opened.open("/ui/fleet")
        expect(page.get_by_text("globex")).to_have_count(0)
        page.get_by_role("link", name="acme/tone@v1").first.click()
        page.get_by_role("link", name="Warm it").click()
        page.get_by_role("dialog").get_by_label("On which node").select_option("n2")
        page.get_by_role("dialog").get_by_role("button", name="Warm it").click()
        expect(page.get_by_text("to be loaded", exact=True)).to_be_visible()
        tell(nodes[1], version, Outcome.LOADED)
        expect(page.locator("tr", has=page.get_by_role("link", name="n2"))).to_contain_text("loaded")
        page.get_by_text("score 0.400 under density").click()
        expect(page.get_by_text("how often it is asked for")).to_be_visible()
        assert opened.complaints == []


@pytest.mark.parametrize("look", LOOKS)
def test_a_fleet_in_use_can_be_read_by_everybody(
    look: str, browser: Browser, live_server: LiveServer, nodes: tuple[Node, Node]
) -> None:
    base = nodes[0].base_revision.base_model.name
    addresses = {
        "map": "/ui/fleet",
        "node": "/ui/fleet/nodes/n1",
        "placement": "/ui/tenants/acme/adapters/tone/versions/v1/placement",
        "quotas": f"/ui/fleet/quotas/{base}",
        "policies": f"/ui/fleet/policies/{base}",
        "policy": f"/ui/fleet/policies/{base}/2",
        "editor": f"/ui/fleet/policies/{base}/propose",
    }
    with window(browser, live_server.url, look=look) as opened:  # type: ignore[arg-type]
        opened.enter(signed_in(make_person(is_platform_admin=True)))
        for name, address in addresses.items():
            opened.open(address)
            looks_well(opened, f"{look}-{name}")
        assert opened.complaints == []
