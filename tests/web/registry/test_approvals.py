"""The inbox, a candidate beside what serves, and deciding on it."""

import html
from io import BytesIO

import pytest
from django.test import Client
from django.utils import timezone

from registry.models import Adapter, Approval, ApprovalPolicy, AuditRecord, Person, Version
from registry.naming import object_key
from registry.states import Role, VersionState
from registry.stores.folder import FolderStore
from releases.services.defaults import begin_default_alias
from tests.factories.registry import (
    digest_for,
    make_actor,
    make_adapter,
    make_approval,
    make_person,
    make_tenant,
    make_version,
)
from tests.factories.releases import point_alias
from tests.factories.reports import check, evaluation_check, make_report
from tests.web.conftest import SignIn
from tests.web.reading import MOST_QUERIES, page_of_version, queries, shown

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent", "signer", "store")]


@pytest.fixture
def adapter() -> Adapter:
    return make_adapter(tenant=make_tenant(name="acme"), name="tone")


@pytest.fixture
def reviewer(adapter: Adapter) -> Person:
    return make_person(roles={adapter.tenant: [Role.REVIEWER]})


@pytest.fixture
def browser(reviewer: Person, sign_in: SignIn) -> Client:
    return sign_in(reviewer)


def candidate(adapter: Adapter, name: str, **facts: object) -> Version:
    return make_version(adapter=adapter, name=name, state=VersionState.CANDIDATE, **facts)  # type: ignore[arg-type]  # as the factory takes them


def review(version: Version, rest: str = "") -> str:
    return page_of_version(version, "approvals", rest)


def seen(version: Version, **facts: str) -> dict[str, str]:
    return {"seen_files": version.root_digest, "seen_report": version.validation_digest, **facts}


def test_the_inbox_has_what_waits_for_the_reader_the_oldest_first(
    adapter: Adapter, reviewer: Person, browser: Client
) -> None:
    first, second = candidate(adapter, "v1"), candidate(adapter, "v2")
    candidate(adapter, "mine", uploader=reviewer)
    make_approval(candidate(adapter, "said"), reviewer=reviewer)
    candidate(make_adapter(), "foreign")
    ApprovalPolicy.objects.create(tenant=adapter.tenant, required=2)
    page = shown(browser, "/ui/approvals")
    assert [version.name for version in browser.get("/ui/approvals").context["rows"]] == ["v1", "v2"]
    assert page.index(review(first)) < page.index(review(second))
    assert "0/2" in page


def test_an_empty_inbox_says_what_comes_there(browser: Client) -> None:
    assert "Nothing waits for you" in shown(browser, "/ui/approvals")


def test_a_review_shows_what_changed_against_the_version_that_serves(adapter: Adapter, browser: Client) -> None:
    served = make_version(adapter=adapter, name="v1", rank=8)
    begin_default_alias(actor=make_actor(), version_id=served.pk)
    make_report(served, checks=[check("files"), check("numerics", "warn", "odd", "odd weights")], alpha=16.0)
    version = candidate(adapter, "v2", rank=16, files={"adapter_config.json": b"{}", "README.md": b"new"})
    texts = {"base": "a", "current": "b", "candidate": "c"}
    figures = evaluation_check(answers=texts, perplexity={"base": 9.0, "current": 3.5, "candidate": 3.0})
    make_report(version, checks=[check("files"), check("numerics"), figures], alpha=32.0)
    page = shown(browser, review(version))
    assert "Against v1, which tone.default stands for" in page
    assert "<del>8</del>" in page
    assert "<ins>16</ins>" in page
    assert "<del>16</del>" in page
    assert "<ins>32</ins>" in page
    assert "<ins>added</ins>" in page
    assert "<del>removed</del>" in page
    assert 'data-label="Difference">-0.5</td>' in page
    assert "Approve" in page


def test_a_first_version_has_nothing_to_be_compared_with(adapter: Adapter, browser: Client) -> None:
    page = shown(browser, review(candidate(adapter, "v1")))
    assert "Nothing serves yet" in page
    assert "It was not evaluated" in page


def test_a_review_can_be_held_against_another_alias(adapter: Adapter, browser: Client) -> None:
    one, other = make_version(adapter=adapter, name="v1"), make_version(adapter=adapter, name="v2")
    begin_default_alias(actor=make_actor(), version_id=one.pk)
    point_alias(name="support", version=other)
    page = shown(browser, f"{review(candidate(adapter, 'v3'))}?against=support")
    assert "Against v2, which support stands for" in page


def test_the_configs_are_compared_line_by_line(adapter: Adapter, browser: Client, store: FolderStore) -> None:
    served = make_version(adapter=adapter, name="v1", files={"adapter_config.json": b'{"r": 8, "lora_alpha": 16}'})
    begin_default_alias(actor=make_actor(), version_id=served.pk)
    version = candidate(adapter, "v2", files={"adapter_config.json": b'{"lora_alpha": 32, "r": 8}'})
    for each, content in ((served, b'{"r": 8, "lora_alpha": 16}'), (version, b'{"lora_alpha": 32, "r": 8}')):
        keep(store, each, content)
    page = html.unescape(shown(browser, review(version, "config")))
    assert "<del>16,</del>" in page
    assert "<ins>32,</ins>" in page
    assert '"r": 8' in page


def keep(store: FolderStore, version: Version, content: bytes) -> None:
    artifact = version.files.get(path="adapter_config.json").artifact
    key = object_key(tenant=version.adapter.tenant.name, sha256=artifact.sha256)
    store.put_stream(key, BytesIO(content), size=len(content), sha256=artifact.sha256)


def test_approving_signs_and_leads_to_what_waits_next(adapter: Adapter, reviewer: Person, browser: Client) -> None:
    first, second = candidate(adapter, "v1"), candidate(adapter, "v2")
    asked = shown(browser, f"{review(first, 'approve')}?files={first.root_digest}&report={first.validation_digest}")
    assert first.root_digest in asked
    answer = browser.post(review(first, "approve"), seen(first, comment="sounds right"))
    assert answer["Location"] == review(second)
    first.refresh_from_db()
    assert first.state == "approved"
    assert first.approvals.get().comment == "sounds right"
    assert "acme/tone@v1 is approved and signed." in shown(browser, review(second))
    again = browser.post(review(first, "approve"), seen(first))
    assert again.status_code == 302
    assert Approval.objects.filter(version=first, reviewer=reviewer).count() == 1


def test_an_approval_of_files_or_a_report_that_changed_meanwhile_is_refused_with_a_sentence(
    adapter: Adapter, browser: Client
) -> None:
    version = candidate(adapter, "v1")
    before = version.validation_digest
    Version.objects.filter(pk=version.pk).update(validation_digest=digest_for("another report"))
    refused = browser.post(review(version, "approve"), seen(version, seen_report=before))
    assert refused.status_code == 422
    assert "The report you looked at is not this version" in refused.content.decode()
    refused = browser.post(review(version, "approve"), seen(version, seen_files="0" * 64))
    assert "The digest you approve is not this version" in refused.content.decode()
    assert browser.post(review(version, "approve"), {}).status_code == 422
    version.refresh_from_db()
    assert version.state == "candidate"


def test_the_first_of_two_approvals_is_noted(adapter: Adapter, browser: Client) -> None:
    ApprovalPolicy.objects.create(tenant=adapter.tenant, required=2)
    version = candidate(adapter, "v1")
    assert browser.post(review(version, "approve"), seen(version))["Location"] == "/ui/approvals"
    page = html.unescape(shown(browser, "/ui/approvals"))
    assert "Noted. acme/tone@v1 waits for more approvals." in page
    assert "That was the last one." in page


def test_declining_takes_a_reason_and_refuses_for_good(adapter: Adapter, browser: Client) -> None:
    version = candidate(adapter, "v1")
    assert browser.post(review(version, "decline"), {"reason": " "}).status_code == 422
    for _click in range(2):
        answer = browser.post(review(version, "decline"), {"reason": "worse than v0"})
        assert answer["Location"] == "/ui/approvals"
    version.refresh_from_db()
    assert (version.state, version.state_message) == ("rejected", "worse than v0")
    assert AuditRecord.objects.filter(action="adapter:version:decline").count() == 1


def test_nobody_decides_on_their_own_and_the_page_says_why(adapter: Adapter, reviewer: Person, browser: Client) -> None:
    version = candidate(adapter, "v1", uploader=reviewer)
    page = shown(browser, review(version))
    assert "You uploaded this version: somebody else has to decide on it." in page
    assert review(version, "approve") not in page
    assert review(version, "decline") not in page
    assert browser.post(review(version, "approve"), seen(version)).status_code == 409
    assert browser.post(review(version, "decline"), {"reason": "no"}).status_code == 409
    version.refresh_from_db()
    assert version.state == "candidate"


def test_who_the_policy_does_not_name_is_told_who_decides(adapter: Adapter, browser: Client) -> None:
    ApprovalPolicy.objects.create(tenant=adapter.tenant, only_people=["cora@acme.example"])
    version = candidate(adapter, "v1")
    page = shown(browser, review(version))
    assert "cora@acme.example" in page
    assert review(version, "approve") not in page
    assert browser.post(review(version, "approve"), seen(version)).status_code == 403


def test_a_role_that_does_not_approve_sees_the_comparison_and_no_buttons(adapter: Adapter, sign_in: SignIn) -> None:
    version = candidate(adapter, "v1")
    viewer = sign_in(roles={adapter.tenant: [Role.VIEWER]})
    page = shown(viewer, review(version))
    assert "asks for one of these roles: reviewer" in page
    for verb in ("approve", "decline", "break-glass"):
        assert review(version, verb) not in page
        assert viewer.post(review(version, verb), seen(version, reason="x")).status_code == 403


def test_a_platform_admin_breaks_the_glass_with_a_reason_and_it_is_told_on_both_chains(
    adapter: Adapter, sign_in: SignIn
) -> None:
    ApprovalPolicy.objects.create(tenant=adapter.tenant, required=2)
    version = candidate(adapter, "v1")
    admin = sign_in(is_platform_admin=True)
    page = shown(admin, review(version))
    assert review(version, "break-glass") in page
    assert review(version, "approve") not in page
    assert admin.post(review(version, "break-glass"), seen(version, reason="")).status_code == 422
    assert admin.post(review(version, "break-glass"), seen(version, reason="site down")).status_code == 302
    version.refresh_from_db()
    assert version.state == "approved"
    assert set(AuditRecord.objects.values_list("chain", flat=True)) == {"acme", "platform"}


def test_next_and_previous_go_through_the_inbox_by_links(adapter: Adapter, browser: Client) -> None:
    first, second, third = (candidate(adapter, name) for name in ("v1", "v2", "v3"))
    page = shown(browser, review(second))
    assert f'href="{review(second, "next")}"' in page
    assert 'data-key="n j"' in page
    assert 'data-key="a"' in page
    assert browser.get(review(second, "next"))["Location"] == review(third)
    assert browser.get(review(second, "previous"))["Location"] == review(first)
    assert browser.get(review(third, "next"))["Location"] == "/ui/approvals"
    assert "That was the last one." in shown(browser, "/ui/approvals")


def test_the_keys_are_documented_where_they_work(adapter: Adapter, browser: Client) -> None:
    version = candidate(adapter, "v1")
    assert "<kbd>a</kbd>" in shown(browser, review(version))
    assert "<kbd>j</kbd>" in shown(browser, "/ui/approvals")


def test_the_review_of_what_was_decided_has_no_buttons(adapter: Adapter, browser: Client) -> None:
    version = make_version(adapter=adapter, name="v1")
    Version.objects.filter(pk=version.pk).update(state_changed_at=timezone.now())
    assert review(version, "approve") not in shown(browser, review(version))


def test_inbox_and_review_take_few_queries(adapter: Adapter, sign_in: SignIn, store: FolderStore) -> None:
    person = make_person(is_platform_admin=True, roles={adapter.tenant: list(Role)})
    served = make_version(adapter=adapter, name="v0")
    begin_default_alias(actor=make_actor(), version_id=served.pk)
    ApprovalPolicy.objects.create(tenant=adapter.tenant, required=2)
    for number in range(20):
        version = candidate(adapter, f"v{number + 1}")
        make_approval(version, reviewer=person if number % 2 else None)
    waiting = candidate(adapter, "v99")
    make_approval(waiting)
    make_report(waiting)
    for each in (served, waiting):
        keep(store, each, b"{}")
    browser = sign_in(person)
    for address in ("/ui/approvals", review(waiting), review(waiting, "approve"), review(waiting, "config")):
        assert queries(browser, address) <= MOST_QUERIES, address
