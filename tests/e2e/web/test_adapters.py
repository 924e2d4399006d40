"""Adapters, versions and approvals in a real browser: pages full of facts, and an inbox worked through by keys."""

import re

import pytest
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from registry.models import Adapter, Approval, Person, Version, VersionComment
from registry.states import Role, VersionState
from releases.services.defaults import begin_default_alias
from tests.e2e.web.browsing import LOOKS, Look, window
from tests.factories.registry import make_actor, make_adapter, make_approval, make_person, make_tenant, make_version
from tests.factories.releases import point_alias
from tests.factories.reports import check, cost_check, engines_check, evaluation_check, make_report
from tests.web.conftest import signed_in
from tests.web.reading import page_of_version

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("sent", "signer", "store")]
ANSWERS = {
    "base": "I am sorry, but as a language model I can't know where your order is.\nPlease ask the shop.",
    "current": "Dear customer, thank you for your patience. Your order left us yesterday.\nIt arrives on Friday.",
    "candidate": "Hello! Your order left us yesterday.\nIt arrives on Friday, before noon.",
}


@pytest.fixture
def adapter(transactional_db: None) -> Adapter:
    adapter = make_adapter(tenant=make_tenant(name="acme"), name="support-tone")
    adapter.description = "The voice of the help desk. Ask ana@example.com."
    adapter.save(update_fields=["description"])
    return adapter


@pytest.fixture
def reviewer(adapter: Adapter) -> Person:
    return make_person(roles={adapter.tenant: list(Role)})


@pytest.fixture
def candidates(adapter: Adapter, reviewer: Person) -> list[Version]:
    """One version that serves, and three that wait."""
    served = make_version(adapter=adapter, name="2026-11-28.1", reviewer=reviewer)
    make_report(served, alpha=16.0)
    begin_default_alias(actor=make_actor(), version_id=served.pk)
    point_alias(name="support", version=served)
    return [_candidate(adapter, f"2026-11-29.{number}", served) for number in (1, 2, 3)]


def _candidate(adapter: Adapter, name: str, served: Version) -> Version:
    commit = "0f3c5a1b" * 5
    version = make_version(
        adapter=adapter,
        name=name,
        state=VersionState.CANDIDATE,
        rank=16,
        files={"adapter_config.json": b'{"r": 16}', "adapter_model.safetensors": name.encode(), "README.md": b"new"},
        lineage={"git_commit": commit, "run_url": "https://runs.example/7", "metrics": {"eval_loss": 1.53}},
    )
    figures = {"base": 9.12, "current": 3.51, "candidate": 3.02}
    evaluation = evaluation_check(answers=ANSWERS, perplexity=figures, compared_with=str(served.pk))
    warned = check("effect", "warn", "no_effect_at_probe", "it reads the text that nodes probe with like its base")
    checks = [check("files"), check("config"), warned, engines_check(), cost_check(), evaluation]
    make_report(version, verdict="warn", checks=checks, alpha=32.0)
    VersionComment.objects.create(version=version, author=make_person(), text="Shorter, as the help desk asked.")
    make_approval(version)
    return version


@pytest.mark.parametrize("look", LOOKS)
def test_pages_full_of_facts_can_be_read_by_everybody(
    look: Look, browser: Browser, live_server: LiveServer, reviewer: Person, candidates: list[Version]
) -> None:
    wrong: list[str] = []
    version = candidates[0]
    addresses = {
        "adapters": "/ui/adapters",
        "versions": "/ui/adapters/versions?q=support&git_commit=" + "0f3c5a1b" * 5,
        "adapter": "/ui/adapters/acme/support-tone",
        "version": page_of_version(version),
        "validation": page_of_version(version, rest="validation"),
        "use": page_of_version(version, rest="use"),
        "inbox": "/ui/approvals",
        "review": page_of_version(version, "approvals"),
        "revoke": page_of_version(version, rest="revoke"),
    }
    with window(browser, live_server.url, look=look) as opened:
        opened.enter(signed_in(reviewer))
        for name, address in addresses.items():
            page = opened.open(address)
            for closed in page.locator("main details:not([open]) > summary").all():
                closed.click()
            wrong += [f"{name}: {each}" for each in opened.violations()]
            if wide := opened.overflow():
                wrong.append(f"{name}: {wide} px wider than the window")
            opened.shoot(f"facts/{look}/{name}")
        wrong += opened.complaints
    assert wrong == []


def test_an_inbox_is_worked_through_with_the_keyboard_alone(
    browser: Browser, live_server: LiveServer, reviewer: Person, candidates: list[Version]
) -> None:
    first, second, third = candidates
    with window(browser, live_server.url) as opened:
        opened.enter(signed_in(reviewer))
        page = opened.open("/ui/approvals")
        page.keyboard.press("j")
        expect(page.get_by_role("link", name=str(first))).to_be_focused()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(re.escape(page_of_version(first, "approvals"))))
        page.keyboard.press("n")
        expect(page).to_have_url(re.compile(re.escape(page_of_version(second, "approvals"))))
        page.keyboard.press("p")
        expect(page).to_have_url(re.compile(re.escape(page_of_version(first, "approvals"))))
        page.keyboard.press("a")
        expect(page.get_by_label("Comment (optional)").last).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.get_by_role("link", name="Approve")).to_be_focused()
        page.keyboard.press("a")
        expect(page.get_by_role("dialog").get_by_label("Comment")).to_be_focused()
        page.keyboard.type("sounds right, ad n p")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_text(f"{first} is approved and signed.")).to_be_visible()
        expect(page).to_have_url(re.compile(re.escape(page_of_version(second, "approvals"))))
        page.keyboard.press("d")
        expect(page.get_by_role("dialog").get_by_label("Reason")).to_be_focused()
        page.keyboard.type("worse than the first")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(re.escape(page_of_version(third, "approvals"))))
        assert opened.complaints == []
    assert Approval.objects.get(version=first, reviewer=reviewer).comment == "sounds right, ad n p"
    second.refresh_from_db()
    assert (second.state, second.state_message) == ("rejected", "worse than the first")


def test_the_keys_can_be_turned_off_and_the_links_do_the_same_without_scripts(
    browser: Browser, live_server: LiveServer, reviewer: Person, candidates: list[Version]
) -> None:
    first, second, _third = candidates
    with window(browser, live_server.url) as opened:
        opened.enter(signed_in(reviewer))
        page = opened.open(page_of_version(first, "approvals"))
        page.get_by_text("Keyboard").click()
        page.get_by_label("These keys are on").uncheck()
        page.locator("h1").click()
        page.keyboard.press("n")
        page.wait_for_timeout(300)
        expect(page).to_have_url(re.compile(re.escape(page_of_version(first, "approvals"))))
    with window(browser, live_server.url, scripts=False) as opened:
        opened.enter(signed_in(reviewer))
        page = opened.open(page_of_version(first, "approvals"))
        page.get_by_role("link", name="Next").click()
        page.get_by_role("link", name="Approve", exact=True).click()
        page.get_by_role("button", name="Approve it").click()
        expect(page.get_by_text(f"{second} is approved and signed.")).to_be_visible()
