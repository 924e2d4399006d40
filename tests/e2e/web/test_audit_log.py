"""An auditor's way through the log in a real browser: find, open, verify, take it out; in both languages."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from client.audit import verify_export
from registry.actors import Actor
from registry.audit import append_record
from registry.models import AuditCheck, Person
from registry.services.audit.checkpoints import make_checkpoint
from registry.states import Role
from tests.e2e.web.browsing import window
from tests.factories.registry import make_actor, make_person, make_tenant
from tests.web.conftest import signed_in
from workers.jobs.audit import check_audit

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("sent", "signer", "store")]
RUI = Actor(kind="person", id="rui@example.com", name="Rui", request_id="req-7", source="10.0.0.9", how="web")
WORDS = {
    "en": {"find": "Find", "verify": "Verify now", "chain": "Chain and verification", "done": "verified"},
    "zh-hans": {"find": "查找", "verify": "立即验证", "chain": "哈希链与验证", "done": "已验证"},
}


@pytest.fixture
def auditor(transactional_db: None) -> Person:
    person = make_person(roles={make_tenant(name="acme"): [Role.AUDITOR]})
    for number in range(60):
        append_record(
            actor=RUI if number == 5 else make_actor(),
            chain="acme",
            action="adapter:version:approve" if number == 5 else "tenant:thing:do",
            object_={"kind": "version", "id": str(number), "name": f"acme/tone@v{number}"},
            before={"state": "candidate"},
            after={"state": "approved"},
            reason="the needle" if number == 5 else "",
        )
    make_checkpoint(actor=make_actor(), chain="acme")
    return person


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_an_auditor_finds_a_record_verifies_the_chain_and_takes_it_out(
    language: str, browser: Browser, live_server: LiveServer, auditor: Person, tmp_path: Path
) -> None:
    words = WORDS[language]
    with window(browser, live_server.url, language=language) as opened:
        opened.enter(signed_in(auditor))
        page = opened.open("/ui/tenants/acme/audit")
        page.locator("[name=text]").fill("needle")
        page.locator("[name=action]").fill("adapter:version")
        page.get_by_role("button", name=words["find"], exact=True).click()
        expect(page.locator("table.audit tbody tr")).to_have_count(1)
        wrong = opened.violations()
        page.locator("table.audit tbody a").click()
        expect(page.locator("main")).to_contain_text("10.0.0.9")
        expect(page.locator("table.diff ins")).to_contain_text("approved")
        wrong += opened.violations()
        verify(page, words)
        wrong += opened.violations()
        page.go_back()
        with page.expect_download() as download:
            page.locator("button[value=jsonl]").click()
        download.value.save_as(tmp_path / "acme.jsonl")
        verdict = verify_export((tmp_path / "acme.jsonl").read_text().splitlines(), chain="acme")
        assert (verdict.intact, verdict.records) == (True, 61)
        assert wrong + opened.complaints == []


def verify(page: Page, words: dict[str, str]) -> None:
    """Ask for it, let the worker do it, and see the page say so by itself."""
    page.goto(re.sub(r"/audit/.*", "/audit", page.url))
    page.get_by_role("link", name=words["chain"]).click()
    page.get_by_role("button", name=words["verify"]).click()
    expect(page.locator("progress")).to_be_visible()
    check_audit(AuditCheck.objects.get().pk)
    expect(page.locator("#standing .badge.good")).to_contain_text(words["done"])
    expect(page.locator("#standing")).not_to_have_attribute("hx-trigger", re.compile(".*"))
